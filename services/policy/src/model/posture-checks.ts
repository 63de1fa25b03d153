import type { ModelPostureCheck } from '@overlay/channel'
import type { Process } from '@overlay/model'
import { timeoutOf } from '../domain/posture/mfa-check.js'
import { type Check, cleanHex } from '../domain/posture/posture-check.js'
import { versionRange } from '../domain/posture/version-range.js'

type Content = Omit<ModelPostureCheck, 'id' | 'name'>

const contents: Readonly<Record<string, (check: Check) => Content>> = {
  OS: ({ operatingSystems }) => ({
    typeId: 'OS',
    osList: {
      osList: (operatingSystems ?? []).map(({ type, versions }) => ({
        osType: type,
        osVersions: rangesOf(versions ?? []),
      })),
    },
  }),
  MAC: ({ macAddresses }) => ({
    typeId: 'MAC',
    mac: { macAddresses: (macAddresses ?? []).map(cleanHex).filter((address) => address !== '') },
  }),
  DOMAIN: ({ domains }) => ({
    typeId: 'DOMAIN',
    domains: { domains: [...new Set((domains ?? []).flatMap(casesOf))] },
  }),
  MFA: (check) => ({
    typeId: 'MFA',
    mfa: {
      timeoutSeconds: BigInt(timeoutOf(check)),
      promptOnWake: check.promptOnWake ?? false,
      promptOnUnlock: check.promptOnUnlock ?? false,
      ignoreLegacyEndpoints: check.ignoreLegacyEndpoints ?? false,
    },
  }),
  PROCESS: (check) => ({
    typeId: 'PROCESS',
    process: processOf({
      osType: check['process.osType'] ?? '',
      path: check['process.path'] ?? '',
      hashes: check['process.hashes'] ?? [],
      signerFingerprints: check['process.signerFingerprint'] ? [check['process.signerFingerprint']] : [],
    }),
  }),
  PROCESS_MULTI: ({ semantic, processes }) => ({
    typeId: 'PROCESS_MULTI',
    // a router dies of any other word
    processMulti: {
      semantic: semantic === 'AnyOf' ? 'AnyOf' : 'AllOf',
      processes: (processes ?? []).map(processOf),
    },
  }),
}

/** No endpoint has one of no operating systems. */
const impossible: Content = { typeId: 'OS', osList: { osList: [] } }

/** A check in the form in which SDKs report: routers compare texts. One of an unknown type is one that no endpoint passes. */
export function modelCheckOf(id: string, name: string, check: Check | undefined): ModelPostureCheck {
  const content = check && contents[check.typeId]
  return { id, name, ...(content ? content(check) : impossible) }
}

/** Routers need a range where here none means any version, and stop at one that they cannot read. */
const rangesOf = (versions: readonly string[]): string[] =>
  versions.length === 0 ? ['>=0.0.0'] : versions.filter((version) => versionRange(version))

/** Here, domains compare equal in any case. */
const casesOf = (domain: string): string[] => [domain, domain.toLowerCase(), domain.toUpperCase()]

const processOf = ({ osType, path, hashes = [], signerFingerprints = [] }: Process) => ({
  osType,
  path,
  hashes: hashes.map(cleanHex),
  fingerprints: signerFingerprints.map(cleanHex),
})
