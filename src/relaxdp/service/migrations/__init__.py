"""The steps from one version of the service's schema to the next."""
