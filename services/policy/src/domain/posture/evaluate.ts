import type { Process } from '@overlay/model'
import { type Check, cleanHex } from './check.js'
import type { PostureData, ProcessReport } from './data.js'
import { passesMfa } from './mfa.js'
import { versionRange } from './version-range.js'

/** Who is asked to pass: what its identity said, and which of its API sessions it is. */
export interface Endpoint {
  readonly data: PostureData
  readonly apiSessionId: string
  readonly nowMs: number
}

type Test = (check: Check, endpoint: Endpoint) => boolean

const tests: Readonly<Record<string, Test>> = {
  OS: ({ operatingSystems }, { data: { os } }) => {
    const wanted = operatingSystems?.find(({ type }) => type.toLowerCase() === os?.type.toLowerCase())
    if (!os || !wanted) return false
    const { versions } = wanted
    return !versions?.length || versions.some((range) => versionRange(range)?.(os.version))
  },

  DOMAIN: ({ domains }, { data: { domain } }) =>
    (domains ?? []).some((name) => name.toLowerCase() === domain?.domain.toLowerCase()),

  MAC: ({ macAddresses }, { data: { mac } }) => hasOne(macAddresses ?? [], mac?.addresses ?? []),

  PROCESS: (check, { data }) => {
    const said = data.processes.findLast(({ checkId }) => checkId === check.id)
    const fingerprint = check['process.signerFingerprint']
    return isGenuine(said, check['process.hashes'] ?? [], fingerprint ? [fingerprint] : [])
  },

  // wire: found by path, whichever check was answered
  PROCESS_MULTI: ({ semantic, processes }, { data }) => {
    const isThere = ({ path, hashes = [], signerFingerprints = [] }: Process): boolean =>
      isGenuine(
        data.processes.findLast((said) => said.path === path),
        hashes,
        signerFingerprints,
      )
    const wanted = processes ?? []
    return semantic === 'AllOf' ? wanted.every(isThere) : wanted.some(isThere)
  },

  MFA: (check, { data, apiSessionId, nowMs }) => passesMfa(check, data.apiSessions[apiSessionId], nowMs),
}

export function passes(check: Check, endpoint: Endpoint): boolean {
  return tests[check.typeId]?.(check, endpoint) ?? false
}

/** differs: both sides are cleaned, so that configured hashes with colons can match. */
const hasOne = (wanted: readonly string[], said: readonly string[]): boolean =>
  wanted.map(cleanHex).some((one) => one !== '' && said.includes(one))

function isGenuine(
  said: ProcessReport | undefined,
  hashes: readonly string[],
  signers: readonly string[],
): boolean {
  if (!said?.isRunning) return false
  return (
    (hashes.length === 0 || hasOne(hashes, [said.hash])) &&
    (signers.length === 0 || hasOne(signers, said.signerFingerprints))
  )
}
