import type { Version } from '@overlay/channel'

/** What a router can do, as its hello announces it. */
export interface RouterFeatures {
  /** It subscribes to the router data model if it can. */
  readonly hasDataModel: boolean
  /** It verifies access tokens with the keys of the model. Others receive them as API sessions. */
  readonly verifiesTokens: boolean
  /** It takes sessions whose token is signed, and no others. */
  readonly needsSignedSessions: boolean
  /** It speaks the grouped control channel of 2.x. */
  readonly isGrouped: boolean
  /** It can compare its model with another. Routers before 2.0.1 may die of that, if an identity has its own configs. */
  readonly comparesModel: boolean
}

/** wire: routers evaluate posture checks, of clients with access tokens, since they take signed sessions. */
export const evaluatesPosture = ({ verifiesTokens, needsSignedSessions }: RouterFeatures): boolean =>
  verifiesTokens && needsSignedSessions

/** Of a router of 1.1 or 1.2. */
export const NO_FEATURES: RouterFeatures = {
  hasDataModel: false,
  verifiesTokens: false,
  needsSignedSessions: false,
  isGrouped: false,
  comparesModel: false,
}

/**
 * wire: from 1.1 to 1.7, and in 2.x, the hello is the same but for the text of the version, so this is the one place that
 * reads it. Programs that are built without a release say v0.0.0, whatever their line: they get all that any line needs.
 * Any other text that names no release counts as 1.1.
 */
export function featuresOf({ version }: Pick<Version, 'version'>, isGrouped: boolean): RouterFeatures {
  const own = release.exec(version)?.slice(1).map(Number) ?? []
  const isSince = (...least: readonly number[]): boolean => {
    const at = least.findIndex((number, index) => number !== own[index])
    return own.length > 0 && (at < 0 || (own[at] ?? 0) > (least[at] ?? 0))
  }
  const isUnreleased = version === unreleased
  return {
    hasDataModel: isGrouped || isUnreleased || isSince(1, 3),
    verifiesTokens: isGrouped || isSince(1, 3),
    needsSignedSessions: isGrouped || isUnreleased || isSince(1, 7),
    isGrouped,
    comparesModel: isGrouped && isSince(2, 0, 1),
  }
}

const unreleased = 'v0.0.0'

const release = /^v(\d{1,4})\.(\d{1,4})\.(\d{1,4})(?:[-+][\w.+-]*)?$/

/**
 * The version by which this controller presents itself. wire: routers from 1.3 on compare it, and report their network
 * interfaces only to controllers since 1.6.3.
 */
export const controllerVersionFor = ({ hasDataModel }: RouterFeatures): string =>
  hasDataModel ? 'v2.0.3' : 'v1.1.13'
