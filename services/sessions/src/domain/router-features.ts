import type { Version } from '@overlay/channel'

/** What a router can do, as its hello announces it. */
export interface RouterFeatures {
  /** It decides access by the router data model, and receives no API sessions of OpenID Connect. */
  readonly hasDataModel: boolean
  /** It takes sessions whose token is signed, and no others. */
  readonly needsSignedSessions: boolean
  /** It speaks the grouped control channel of 2.x. */
  readonly isGrouped: boolean
}

/** wire: routers evaluate posture checks, of clients with access tokens, since they take signed sessions. */
export const evaluatesPosture = ({ needsSignedSessions }: RouterFeatures): boolean => needsSignedSessions

/** Of a router of 1.1 or 1.2. */
export const NO_FEATURES: RouterFeatures = {
  hasDataModel: false,
  needsSignedSessions: false,
  isGrouped: false,
}

/**
 * wire: from 1.1 to 1.7 the hello is the same but for the text of the version, so this is the one place that reads it. A
 * text that names no release is that of a build without a version: it counts as 1.1, which every router from 1.1 to 1.6
 * can be.
 */
export function featuresOf({ version }: Pick<Version, 'version'>, isGrouped: boolean): RouterFeatures {
  if (isGrouped) return { hasDataModel: true, needsSignedSessions: true, isGrouped }
  const [, major, minor] = release.exec(version)?.map(Number) ?? []
  const isSince = (least: number): boolean =>
    major !== undefined && minor !== undefined && (major > 1 || (major === 1 && minor >= least))
  return { hasDataModel: isSince(3), needsSignedSessions: isSince(7), isGrouped }
}

const release = /^v(\d{1,4})\.(\d{1,4})\.\d{1,4}(?:[-+][\w.+-]*)?$/

/**
 * The version by which this controller presents itself. wire: routers from 1.3 on compare it, and report their network
 * interfaces only to controllers since 1.6.3.
 */
export const controllerVersionFor = ({ hasDataModel }: RouterFeatures): string =>
  hasDataModel ? 'v2.0.3' : 'v1.1.13'
