/** Addresses of campaigns and surveys: one spelling each, and nothing that could be read on the way. */

import { RelaxdpError } from "./errors.js";

// Nothing in these is changed by how a browser reads an address: what is checked is what is asked.
const HOST = /([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::(\d{1,5}))?/;
const PREFIX = /((?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*)/;
const ROUTE = /\/v1\/campaigns\/([A-Za-z0-9_-]{1,64})/;
const ADDRESS = new RegExp(`^(https?)://${HOST.source}${PREFIX.source}${ROUTE.source}$`);
/** @type {Partial<Record<string, number>>} */
const PORTS = { https: 443, http: 80 };
const LOOPBACK = /^(?:localhost|\[::1\]|127(?:\.(?:0|[1-9]\d{0,2})){3})$/;

/** Where a campaign is: its server, and its name there. */
export class CampaignAddress {
  /**
   * @param {string} server
   * @param {string} host
   * @param {string} id
   */
  constructor(server, host, id) {
    this.server = server;
    this.host = host;
    this.id = id;
    Object.freeze(this);
  }

  /**
   * Read the address of a campaign. Unencrypted HTTP is for this machine alone, unless somebody insists.
   *
   * @param {unknown} text such as https://collect.example/v1/campaigns/snacks
   * @param {{ allowHttp?: boolean }} [options]
   */
  static parse(text, { allowHttp = false } = {}) {
    const match = typeof text === "string" && text.length < 2000 ? ADDRESS.exec(text) : null;
    if (match === null || Number(match[3] ?? 0) > 65_535) {
      throw new RelaxdpError(
        "address_error",
        "the address of a campaign looks like https://collect.example/v1/campaigns/NAME. Nothing was sent.",
      );
    }
    const [, scheme, written, port, prefix, id] = match;
    const host = written.toLowerCase();
    if (scheme === "http" && !allowHttp && !LOOPBACK.test(host)) {
      throw new RelaxdpError(
        "address_error",
        `reports to ${host} would travel unencrypted over http://. Use https://. Nothing was sent.`,
        { host },
      );
    }
    const place = port === undefined || Number(port) === PORTS[scheme] ? host : `${host}:${Number(port)}`;
    return new CampaignAddress(`${scheme}://${place}${prefix}`, place, id);
  }

  /** @param {...string} words below the campaign */
  url(...words) {
    return [`${this.server}/v1/campaigns/${this.id}`, ...words].join("/");
  }

  toString() {
    return this.url();
  }
}

const SURVEY = /^(.*)\/v1\/surveys\/([A-Za-z0-9_-]{1,64})$/;

/** Where a survey of several questions is. */
export class SurveyAddress {
  /** @param {CampaignAddress} place of a campaign of the same name, which has the same server */
  constructor({ server, host, id }) {
    this.server = server;
    this.host = host;
    this.id = id;
    Object.freeze(this);
  }

  /**
   * @param {unknown} text such as https://collect.example/v1/surveys/canteen
   * @param {{ allowHttp?: boolean }} [options]
   */
  static parse(text, options) {
    const match = typeof text === "string" ? SURVEY.exec(text) : null;
    if (match === null) {
      throw new RelaxdpError(
        "address_error",
        "the address of a survey looks like https://collect.example/v1/surveys/NAME. Nothing was sent.",
      );
    }
    return new SurveyAddress(CampaignAddress.parse(`${match[1]}/v1/campaigns/${match[2]}`, options));
  }

  url() {
    return `${this.server}/v1/surveys/${this.id}`;
  }

  /**
   * Where a question of the survey is: a campaign of the same server.
   *
   * @param {string} name
   */
  question(name) {
    return CampaignAddress.parse(`${this.server}/v1/campaigns/${name}`, { allowHttp: true });
  }

  toString() {
    return this.url();
  }
}
