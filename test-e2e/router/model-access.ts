import { ModelPolicyType, type ModelPostureCheck } from '@overlay/channel'
import type { ModelContents } from '../../packages/channel/testing/model-contents.js'

/** What an endpoint has reported about itself. */
export interface Posture {
  readonly domain?: string
  readonly macAddresses?: readonly string[]
  readonly osType?: string
  readonly processPaths?: readonly string[]
  readonly hasPassedMfa?: boolean
}

export type Access = 'dial' | 'bind'

/**
 * Whether a policy grants the identity the service.
 * @param posture undefined: posture checks are not evaluated, as for API sessions that are not of OpenID Connect
 */
export function isGranted(
  { 'service-policy': policies, 'posture-check': checks }: ModelContents,
  identityId: string,
  serviceId: string,
  access: Access,
  posture?: Posture,
): boolean {
  const type = access === 'dial' ? ModelPolicyType.DIAL : ModelPolicyType.BIND
  const passes = (id: string): boolean => {
    const check = checks.get(id)
    return !posture || (check !== undefined && isPassed(check, posture))
  }
  return [...policies.values()].some(
    ({ policy, identities, services, postureChecks }) =>
      policy.policyType === type &&
      identities.has(identityId) &&
      services.has(serviceId) &&
      [...postureChecks].every(passes),
  )
}

function isPassed(check: ModelPostureCheck, posture: Posture): boolean {
  const { mac, mfa, osList, process, processMulti, domains } = check
  const runs = (path: string): boolean => posture.processPaths?.includes(path) === true
  if (mac) return mac.macAddresses.some((address) => posture.macAddresses?.includes(address))
  if (domains) return posture.domain !== undefined && domains.domains.includes(posture.domain)
  if (osList) return osList.osList.some(({ osType }) => osType === posture.osType)
  if (process) return runs(process.path)
  if (processMulti) {
    const paths = processMulti.processes.map(({ path }) => path)
    return processMulti.semantic === 'AnyOf' ? paths.some(runs) : paths.every(runs)
  }
  return mfa !== undefined && posture.hasPassedMfa === true
}

/** Whether a revocation of the model ends an API session. */
export function isRevoked(
  { revocations }: ModelContents,
  session: {
    readonly apiSessionId: string
    readonly identityId: string
    /** Of an access token. */
    readonly issuedAtSeconds?: number
  },
): boolean {
  if (revocations.get(session.apiSessionId)?.type === 'API_SESSION') return true
  const revocation = revocations.get(session.identityId)
  if (revocation?.type !== 'IDENTITY' || session.issuedAtSeconds === undefined) return false
  return !revocation.issuedBefore || session.issuedAtSeconds < secondsOf(revocation.issuedBefore)
}

const secondsOf = ({ seconds, nanos }: { seconds: bigint; nanos: number }): number =>
  Number(seconds) + nanos / 1e9
