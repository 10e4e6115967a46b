/** What the service answers with, made from its own description: python -m tests.browser.wire_types. */

export interface Accepted {
  status: "new" | "same";
}

export interface Advice {
  encoding: PublicEncoding;
  widest: number;
  levels: LevelAdvice[];
}

export interface Campaigns {
  campaigns: OperatorCampaign[];
}

export interface Cell {
  row: string | number;
  column: string | number;
  estimate: number;
  std_error: number | null;
  low: number;
  high: number;
  beyond?: "above" | "below";
}

export interface ColumnSales {
  listing: string;
  release: string;
  column: string;
  key_fingerprint: string;
  sold: SoldLevel[];
  largest_sold: string;
  held: string;
  open_requests: number;
}

export interface Counts {
  cohort: number | null;
  reports: number;
  supports: number[];
}

export interface Devices {
  total: number;
  per_level: number[];
  reports: number[];
}

export interface Estimate {
  campaign: string;
  version: number;
  devices: number;
  state: "finished" | "open" | "paused" | "waiting";
  open_level: number | null;
  half_width: number | null;
  target: Target | null;
  target_met: boolean;
  method: "average" | "precision";
  confidence_level: number;
  about: "population" | "sample";
  simultaneous: boolean;
  values: number;
  levels: LevelEstimate[];
  pooled: Row[] | null;
  unlisted: Unlisted | null;
  quantiles: Quantile[] | null;
  integrity: Integrity | null;
}

export interface Group {
  level: WireLevel;
  devices: number;
  public_epsilon: string;
  rows: Row[];
  counts: Counts[];
}

export interface Health {
  status: "ok";
}

export interface Integrity {
  tested: number;
  untested: number;
  alarm: boolean;
  false_alarms: number;
  p_value: number;
  p_value_ever: number;
  unnoticed: number;
  made_up: MadeUp;
  pushed: PushedValue[];
  shares: Row[] | null;
  without: Row[] | null;
  reach: Reach | null;
  limits: string[];
}

export interface InvitationGood {
  status: "good";
}

export interface InvitationNumbers {
  issued: number;
  used: number;
}

export interface Invitations {
  invitations: string[];
}

export interface Learning {
  half_width: number;
  devices: (number | null)[];
}

export interface LevelAdvice {
  epsilon: string;
  half_width: number;
  met: boolean | null;
  devices_needed: number | null;
}

export interface LevelEstimate {
  epsilon: string;
  threshold: string;
  devices: number;
  reports: number;
  rows: Row[];
}

export interface ListingView {
  id: string;
  kind: "pool" | "release";
  title: string;
  about: string;
  seller: string;
  release: string;
  column: string;
  currency: string;
  approval: "automatic" | "seller";
  mechanism: Record<string, unknown>;
  levels: OfferView[];
  recommended: string | null;
  owned: string | null;
}

export interface ListingViews {
  listings: ListingView[];
}

export interface MadeUp {
  estimate: number;
  low: number;
  high: number;
}

export interface MarketView {
  public_key: string;
  fingerprint: string;
  listings: number;
}

export interface MemberView {
  name: string;
  role: "buyer" | "operator" | "seller";
}

export interface NewToken {
  name: string;
  role: "buyer" | "seller";
  token: string;
}

export interface OfferView {
  epsilon: string;
  threshold: string;
  price: string;
  due: string;
  rows: number;
  rows_by_level: Record<string, number>;
  margin: number | null;
  is_useful: boolean;
  is_dominated: boolean;
  digest: string | null;
}

export interface OfferedEncoding {
  name: string;
  meaning: string;
  domain: "range" | "values" | "words";
  options: OfferedOption[];
}

export interface OfferedEncodings {
  encodings: OfferedEncoding[];
}

export interface OfferedOption {
  name: string;
  meaning: string;
  least: number;
  most: number;
  is_planned: boolean;
}

export interface OperatorCampaign {
  id: string;
  question: string;
  encoding: PublicEncoding;
  release: string;
  attribute: string;
  levels: WireLevel[];
  open_level: number | null;
  state: "finished" | "open" | "paused" | "waiting";
  opens: string | null;
  closes: string | null;
  largest_epsilon: string;
  needs_invitation: boolean;
  publish: Publish | null;
  survey: SurveyPlace | null;
  learns: Learning;
  devices: Devices;
  half_width: number | null;
  readable: Readable;
  target: Target | null;
  target_met: boolean;
  automatic_devices: number | null;
  level_opens: (string | null)[];
  reduced: boolean;
  refused: Refused;
  invitations: InvitationNumbers;
  version: number;
  published: "done" | "later" | "never" | "soon";
  asker?: string | null;
  about?: string | null;
  purpose?: string | null;
  contact?: string | null;
  privacy_notice?: string | null;
  colour?: string | null;
  logo?: string | null;
  suggested?: string | null;
  shows_results?: boolean;
}

export interface OperatorSurvey {
  id: string;
  questions: OperatorCampaign[];
  cross: [string, string][];
  asker?: string | null;
  about?: string | null;
  purpose?: string | null;
  contact?: string | null;
  privacy_notice?: string | null;
  colour?: string | null;
  logo?: string | null;
  suggested?: string | null;
  shows_results?: boolean;
}

export interface OrderView {
  id: string;
  listing: string;
  title: string;
  seller: string;
  buyer: string;
  epsilon: string;
  price: string;
  due: string;
  currency: string;
  state: "approved" | "requested" | "withdrawn";
  previous: string | null;
  requested: string;
  digest: string | null;
  is_new?: boolean;
}

export interface OrderViews {
  orders: OrderView[];
}

export interface Problem {
  error: string;
  message: string;
  fields: Record<string, unknown>;
  sentence: string;
  hint: string;
  consequence: string;
}

export interface PublicCampaign {
  id: string;
  question: string;
  encoding: PublicEncoding;
  release: string;
  attribute: string;
  levels: WireLevel[];
  open_level: number | null;
  state: "finished" | "open" | "paused" | "waiting";
  opens: string | null;
  closes: string | null;
  largest_epsilon: string;
  needs_invitation: boolean;
  publish: Publish | null;
  survey: SurveyPlace | null;
  learns: Learning;
  asker?: string | null;
  about?: string | null;
  purpose?: string | null;
  contact?: string | null;
  privacy_notice?: string | null;
  colour?: string | null;
  logo?: string | null;
  suggested?: string | null;
  shows_results?: boolean;
}

export interface PublicEncoding {
  name: string;
  options: Record<string, number>;
  values?: (string | number)[];
  range?: [number, number];
}

export interface PublicSurvey {
  id: string;
  questions: PublicCampaign[];
  cross: [string, string][];
  asker?: string | null;
  about?: string | null;
  purpose?: string | null;
  contact?: string | null;
  privacy_notice?: string | null;
  colour?: string | null;
  logo?: string | null;
  suggested?: string | null;
  shows_results?: boolean;
}

export interface Publication {
  campaign: string;
  question: string;
  encoding: PublicEncoding;
  devices: number;
  least: number;
  public_epsilon: string;
  delta: number;
  report_epsilon: string;
  assumes: string[];
  confidence_level: number;
  rows: Row[];
  groups: Group[];
}

export interface Publish {
  least: number;
  delta?: number | null;
}

export interface PushedValue {
  value: string | number;
  kind: "changed" | "older" | "repeated";
  devices: MadeUp;
}

export interface Quantile {
  probability: number;
  estimate: number;
  low: number;
  high: number;
}

export interface Reach {
  epsilon: string;
  most: number;
  at_once: string;
}

export interface Readable {
  half_width: number;
  more: number | null;
}

export interface ReceiptContent {
  receipt: Record<string, unknown>;
  signature: string;
}

export interface Refused {
  differing: number;
}

export interface Results {
  results: string[];
}

export interface Row {
  value: string | number;
  estimate: number;
  std_error: number | null;
  low: number;
  high: number;
  beyond?: "above" | "below";
  share?: number;
  p_value?: number;
  found?: boolean;
}

export interface Sales {
  columns: ColumnSales[];
  vaults: VaultSales[];
}

export interface SoldLevel {
  epsilon: string;
  buyers: number;
}

export interface SurveyEstimate {
  survey: string;
  method: "average" | "precision";
  confidence_level: number;
  about: "population" | "sample";
  simultaneous: boolean;
  questions: SurveyQuestion[];
  tables: TwoWay[];
}

export interface SurveyPlace {
  name: string;
  counted_with: string[];
}

export interface SurveyQuestion {
  campaign: string;
  version: number;
  question: string;
  state: "finished" | "open" | "paused" | "waiting";
  epsilon: string | null;
  devices: number;
  simultaneous: boolean;
  values: number;
  rows: Row[] | null;
}

export interface Surveys {
  surveys: OperatorSurvey[];
}

export interface Target {
  half_width: number;
  confidence_level?: number;
  simultaneous?: boolean;
  about?: "population" | "sample";
  method?: "average" | "precision";
}

export interface TwoWay {
  rows: string;
  columns: string;
  devices: number;
  cells: Cell[] | null;
}

export interface Unlisted {
  estimate: number;
  std_error: number;
}

export interface VaultSales {
  key_fingerprint: string;
  largest_sold: string;
  held: string;
}

export interface WireLevel {
  epsilon: string;
  threshold: string;
}

export interface Withdrawn {
  status: "withdrawn";
  state: "finished" | "open" | "paused" | "waiting";
  message: string;
}
