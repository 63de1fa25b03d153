import { createHash } from 'node:crypto'
import { has } from '../bitset.js'
import { policiesAreShown } from '../effect.js'
import { type Endpoint, passes } from '../posture/evaluate-check.js'
import type { State } from '../state.js'
import {
  type Linking,
  linkingPolicies,
  reachOf,
  requiredCheckIds,
  type Viewer,
  visibleIds,
} from '../state-queries.js'
import { endpointOf, postureOf } from './evaluate-policies.js'

/** Viewers with equal keys see equal lists of services, in any replica. Empty: the list changes with time. */
export function contentKey(state: State, viewer: Viewer): string {
  if (isMoving(state, viewer)) return ''
  const hash = createHash('sha256')
  const { identityId } = viewer
  const visible = visibleIds(state, viewer)
  const [dial, bind] = [reachOf(state, identityId, 'Dial'), reachOf(state, identityId, 'Bind')]
  const policiesOf = policyTexts(state, identityId)
  for (const id of visible) {
    const number = state.services.numberOf(id) ?? -1
    hash.update(`${has(dial, number)} ${has(bind, number)} ${serviceText(state, id)}`)
    if (policiesAreShown(state)) hash.update(policiesOf(id))
  }
  const listed = new Set(visible)
  const overrides = [...(state.identityOverrides.get(identityId) ?? [])]
    .filter(({ serviceId }) => listed.has(serviceId))
    .map(({ serviceId, configId }) => JSON.stringify([serviceId, configId, configOf(state, configId)]))
    .sort()
  return hash.update(overrides.join()).digest('base64url')
}

function serviceText(state: State, serviceId: string): string {
  const cached = state.serviceTexts.get(serviceId)
  if (cached !== undefined) return cached
  const content = state.contents.get(serviceId)
  const configs = content?.configIds.map((id) => [id, configOf(state, id)])
  const text = JSON.stringify([serviceId, content?.revision, configs])
  state.serviceTexts.set(serviceId, text)
  return text
}

function configOf({ configs, typeNames }: State, id: string): unknown {
  const config = configs.get(id)
  return config && [config.revision, typeNames.get(config.typeId)]
}

/** By service: the policies that grant it, and whether their checks are passed now. Evaluates each policy once. */
function policyTexts(state: State, identityId: string): (serviceId: string) => string {
  const endpoint = endpointOf(state, { identityId, apiSessionId: '' })
  const texts = new Map<string, string>()
  const textOf = ({ policyId, type }: Linking): string => {
    const text = texts.get(policyId) ?? JSON.stringify([policyId, type, checksOf(state, policyId, endpoint)])
    texts.set(policyId, text)
    return text
  }
  return (serviceId) => {
    const policies = linkingPolicies(state, identityId, serviceId)
    policies.sort((a, b) => (a.policyId < b.policyId ? -1 : 1))
    return `[${policies.map(textOf).join()}]`
  }
}

const checksOf = (state: State, policyId: string, endpoint: Endpoint): unknown[] =>
  requiredCheckIds(state, policyId).map((id) => {
    const content = state.checkContents.get(id)
    return content && [id, content.revision, passes(content.check, endpoint)]
  })

/** A second factor that was passed counts for one API session, for a time. */
const isMoving = (state: State, { identityId }: Viewer): boolean =>
  policiesAreShown(state) &&
  Object.values(postureOf(state, identityId).apiSessions).some(({ passedMfaAt }) => passedMfaAt !== undefined)
