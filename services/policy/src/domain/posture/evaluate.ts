import type { Process } from '@overlay/model'
import { type Check, cleanHex } from './check.js'
import type { PostureData, ProcessReport } from './data.js'
import { passesMfa } from './mfa.js'
import { versionRange } from './version-range.js'

/** An endpoint that is to pass checks: the posture of its identity, and its API session. */
export interface Endpoint {
  readonly data: PostureData
  readonly apiSessionId: string
  readonly nowMs: number
}

type Test = (check: Check, endpoint: Endpoint) => boolean

const tests: Readonly<Record<string, Test>> = {
  OS: ({ operatingSystems }, { data: { os } }) => {
    const system = operatingSystems?.find(({ type }) => type.toLowerCase() === os?.type.toLowerCase())
    if (!os || !system) return false
    const { versions } = system
    return !versions?.length || versions.some((range) => versionRange(range)?.(os.version))
  },

  DOMAIN: ({ domains }, { data: { domain } }) =>
    (domains ?? []).some((name) => name.toLowerCase() === domain?.domain.toLowerCase()),

  MAC: ({ macAddresses }, { data: { mac } }) => hasOne(macAddresses ?? [], mac?.addresses ?? []),

  PROCESS: (check, { data }) => {
    const report = data.processes.findLast(({ checkId }) => checkId === check.id)
    const fingerprint = check['process.signerFingerprint']
    return isGenuine(report, check['process.hashes'] ?? [], fingerprint ? [fingerprint] : [])
  },

  // wire: compared by path, whichever check the report answers
  PROCESS_MULTI: ({ semantic, processes }, { data }) => {
    const isThere = ({ path, hashes = [], signerFingerprints = [] }: Process): boolean =>
      isGenuine(
        data.processes.findLast((report) => report.path === path),
        hashes,
        signerFingerprints,
      )
    const required = processes ?? []
    return semantic === 'AllOf' ? required.every(isThere) : required.some(isThere)
  },

  MFA: (check, { data, apiSessionId, nowMs }) => passesMfa(check, data.apiSessions[apiSessionId], nowMs),
}

export function passes(check: Check, endpoint: Endpoint): boolean {
  return tests[check.typeId]?.(check, endpoint) ?? false
}

/** differs: both sides are cleaned, so that configured hashes with colons can match. */
const hasOne = (required: readonly string[], reported: readonly string[]): boolean =>
  required.map(cleanHex).some((one) => one !== '' && reported.includes(one))

function isGenuine(
  report: ProcessReport | undefined,
  hashes: readonly string[],
  signers: readonly string[],
): boolean {
  if (!report?.isRunning) return false
  return (
    (hashes.length === 0 || hasOne(hashes, [report.hash])) &&
    (signers.length === 0 || hasOne(signers, report.signerFingerprints))
  )
}
