import { memoized, type Process } from '@overlay/model'
import { passesMfa } from './mfa-check.js'
import { type Check, cleanHex } from './posture-check.js'
import type { PostureData, ProcessReport } from './posture-data.js'
import { type VersionRange, versionRange } from './version-range.js'

/** An endpoint that is to pass checks: the posture of its identity, and its API session. */
export interface Endpoint {
  readonly data: PostureData
  readonly apiSessionId: string
  readonly nowMs: number
}

type Test = (check: Check, endpoint: Endpoint) => boolean

/** What a check requires, in the form in which reports are compared. */
interface Required {
  readonly systems: readonly System[]
  readonly domains: readonly string[]
  readonly macAddresses: readonly string[]
  readonly process: Criteria
  readonly processes: readonly (Criteria & Pick<Process, 'path'>)[]
}

/** Any version where there are no ranges. Undefined: a range that no version is in. */
interface System {
  readonly type: string
  readonly ranges: readonly (VersionRange | undefined)[]
}

/** Of a process. Empty lists require nothing. */
interface Criteria {
  readonly hashes: readonly string[]
  readonly signers: readonly string[]
}

/**
 * Folded once for each loaded row, which keeps the words as they were written.
 * differs: both sides are cleaned, so that configured hashes with colons can match.
 */
const requiredBy = memoized((check: Check): Required => {
  const fingerprint = check['process.signerFingerprint']
  return {
    systems: (check.operatingSystems ?? []).map(({ type, versions }) => ({
      type: type.toLowerCase(),
      ranges: (versions ?? []).map(versionRange),
    })),
    domains: (check.domains ?? []).map((name) => name.toLowerCase()),
    macAddresses: (check.macAddresses ?? []).map(cleanHex),
    process: {
      hashes: (check['process.hashes'] ?? []).map(cleanHex),
      signers: fingerprint ? [cleanHex(fingerprint)] : [],
    },
    processes: (check.processes ?? []).map(({ path, hashes = [], signerFingerprints = [] }) => ({
      path,
      hashes: hashes.map(cleanHex),
      signers: signerFingerprints.map(cleanHex),
    })),
  }
})

const tests: Readonly<Record<string, Test>> = {
  OS: (check, { data: { os } }) => {
    const system = os && requiredBy(check).systems.find(({ type }) => type === os.type.toLowerCase())
    if (!system) return false
    const { ranges } = system
    return ranges.length === 0 || ranges.some((range) => range?.(os.version))
  },

  DOMAIN: (check, { data: { domain } }) =>
    domain !== undefined && requiredBy(check).domains.includes(domain.domain.toLowerCase()),

  MAC: (check, { data: { mac } }) => hasOne(requiredBy(check).macAddresses, mac?.addresses ?? []),

  PROCESS: (check, { data }) => {
    const report = data.processes.findLast(({ checkId }) => checkId === check.id)
    return isGenuine(report, requiredBy(check).process)
  },

  // wire: a report counts for every PROCESS_MULTI check with its path, also if it answers another check
  PROCESS_MULTI: (check, { data }) => {
    const { processes } = requiredBy(check)
    const isThere = ({ path, ...criteria }: Required['processes'][number]): boolean =>
      isGenuine(
        data.processes.findLast((report) => report.path === path),
        criteria,
      )
    return check.semantic === 'AllOf' ? processes.every(isThere) : processes.some(isThere)
  },

  MFA: (check, { data, apiSessionId, nowMs }) => passesMfa(check, data.apiSessions[apiSessionId], nowMs),
}

export function passes(check: Check, endpoint: Endpoint): boolean {
  return tests[check.typeId]?.(check, endpoint) ?? false
}

const hasOne = (required: readonly string[], reported: readonly string[]): boolean =>
  required.some((one) => one !== '' && reported.includes(one))

function isGenuine(report: ProcessReport | undefined, { hashes, signers }: Criteria): boolean {
  if (!report?.isRunning) return false
  return (
    (hashes.length === 0 || hasOne(hashes, [report.hash])) &&
    (signers.length === 0 || hasOne(signers, report.signerFingerprints))
  )
}
