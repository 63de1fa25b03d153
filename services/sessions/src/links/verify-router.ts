import { contentType, encodeBool, headerKey, type Outgoing } from '@overlay/channel'
import { standingOf } from '../domain/hello.js'
import type { RouterDirectory } from '../routers/router-directory.js'

/** Answers a router that asks whether the peer of a new link is the router that it claims to be. */
export const verification = (refusal: string | undefined): Outgoing => ({
  type: contentType.result,
  headers: new Map([[headerKey.resultSuccess, encodeBool(refusal === undefined)]]),
  body: Buffer.from(refusal ?? 'the router is verified'),
})

/** Undefined: it is that router. */
export function refusalOf(
  router: ReturnType<RouterDirectory['get']>,
  fingerprints: readonly string[],
): string | undefined {
  if (!router) return 'the router does not exist'
  if (router.fingerprint === undefined) return 'the router has not enrolled'
  if (router.disabled) return 'the router is disabled' // differs: the original verifies it
  if (fingerprints.some((fingerprint) => standingOf(router, fingerprint))) return undefined
  return 'the certificate is not that of the router'
}
