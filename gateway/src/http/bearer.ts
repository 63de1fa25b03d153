import type { RequestContext } from './request-context.js'

/** wire: in this case, followed by one space. */
const BEARER = 'Bearer '

/** The bearer tokens of a request, in order and unchecked. */
export const bearerTokensOf = ({ env: { incoming } }: RequestContext): string[] =>
  (incoming.headersDistinct.authorization ?? [])
    .filter((value) => value.startsWith(BEARER))
    .map((value) => value.slice(BEARER.length))
