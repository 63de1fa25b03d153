import type { reportedPosture, SchemaValue } from '@overlay/model'
import type { PostureData } from './posture-data.js'

/** The posture data of an identity in wire shape. wire: members that were never reported, and the build, are null. */
export function postureView({
  os,
  domain,
  mac,
  processes,
  apiSessions,
}: PostureData): SchemaValue<typeof reportedPosture> {
  return {
    apiSessionPostureData: Object.fromEntries(
      Object.entries(apiSessions).map(([id, { passedMfaAt, wokenAt, unlockedAt }]) => [
        id,
        {
          endpointState: { unlockedAt: unlockedAt ?? null, wokenAt: wokenAt ?? null },
          mfa: {
            apiSessionId: id,
            passedAt: null,
            passedMfa: passedMfaAt !== undefined,
            passedOnUnlock: null,
            passedOnWake: null,
          },
        },
      ]),
    ),
    domain: { ...baseOf(domain), domain: domain?.domain ?? null },
    mac: { ...baseOf(mac), addresses: mac?.addresses ?? null },
    os: { ...baseOf(os), build: null, type: os?.type ?? null, version: os?.version ?? null },
    processes: processes.map((process) => ({
      ...baseOf(process),
      binaryHash: process.hash,
      isRunning: process.isRunning,
      signerFingerprints: process.signerFingerprints,
    })),
  }
}

const baseOf = (report: { readonly checkId: string; readonly at: string } | undefined) => ({
  lastUpdatedAt: report?.at ?? null,
  postureCheckId: report?.checkId ?? '',
  timedOut: false,
})
