import { ctrlType, InspectRequest, InspectResponse } from '@overlay/channel'
import { boundedQueue } from '@overlay/process/async'
import { type InspectedValue, invalid, type Methods, type SessionsServiceService } from '@overlay/rpc'
import { RE2JS } from 're2js'
import { decodeLimited } from '../channel/handlers.js'
import {
  INSPECT_ROUTER_MS,
  INSPECTED_AT_ONCE,
  MAX_INSPECTED,
  MAX_INSPECTED_VALUES,
  MAX_INSPECTION_BYTES,
  MAX_PATTERN_LENGTH,
} from '../limits.js'
import { costsOfReplica } from '../store/terminator-cost.js'
import type { Deps } from './method-deps.js'

type InspectDeps = Pick<Deps, 'changeLog' | 'directory' | 'presence' | 'messages'>

/** Asks the online routers whose id or name the pattern matches, of all replicas, and answers for the replicas. */
export const inspect =
  (deps: InspectDeps): Methods<SessionsServiceService>['inspect'] =>
  async ({ pattern, values: requestedValues }) => {
    const matches = matcherOf(pattern)
    if (typeof matches === 'string') return { errors: [matches], values: [] } // wire: an invalid pattern answers 200 with an error in `errors`
    if (requestedValues.length > MAX_INSPECTED_VALUES)
      throw invalid('requestedValues', `at most ${MAX_INSPECTED_VALUES} values`)
    const { directory, presence } = deps
    const replicas = [...presence.replicas()].filter(matches).sort()
    const routerIds = [...presence.online()]
      .map(({ routerId }) => routerId)
      .filter((id) => matches(id) || matches(directory.get(id)?.name ?? ''))
    const queue = boundedQueue({ name: 'inspect', running: INSPECTED_AT_ONCE, waiting: MAX_INSPECTED })
    const answers = await Promise.all([
      ...replicas.map((id) => ofReplica(deps, id, requestedValues)),
      ...routerIds.map((id) => queue(() => ofRouter(deps, id, requestedValues))),
    ])
    return bounded(answers)
  }

interface Answer {
  readonly errors: readonly string[]
  readonly values: readonly InspectedValue[]
}

/** wire: patterns have the syntax of Go, matched in linear time. */
function matcherOf(pattern: string): ((text: string) => boolean) | string {
  if (pattern.length > MAX_PATTERN_LENGTH) return `a pattern of more than ${MAX_PATTERN_LENGTH} characters`
  try {
    const compiled = RE2JS.compile(pattern)
    return (text) => compiled.test(text)
  } catch (err) {
    return err instanceof Error ? err.message : String(err)
  }
}

async function ofRouter(
  { messages }: InspectDeps,
  routerId: string,
  requestedValues: string[],
): Promise<Answer> {
  const body = InspectRequest.encode({ requestedValues }).finish()
  try {
    const answer = await messages.request(
      routerId,
      { type: ctrlType.inspectRequest, body },
      INSPECT_ROUTER_MS,
    )
    const { errors, values } = decodeLimited(InspectResponse, answer.body)
    return {
      errors: errors.map((text) => `${routerId}: ${text}`),
      values: values.map(({ name, value }) => ({ appId: routerId, name, value })),
    }
  } catch (err) {
    return { errors: [`${routerId}: ${err instanceof Error ? err.message : String(err)}`], values: [] }
  }
}

type ValueOfReplica = (deps: InspectDeps, replicaId: string) => unknown

const replicaValues: Readonly<Record<string, ValueOfReplica>> = {
  'connected-routers': ({ presence, directory }, replicaId) =>
    [...presence.online()]
      .flatMap(({ routerId }) => presence.of(routerId))
      .filter((connection) => connection.replicaId === replicaId)
      .map(({ routerId, version, connectedAt }) => ({
        Id: routerId,
        Name: directory.get(routerId)?.name ?? '',
        Version: version,
        ConnectTime: connectedAt.toISOString(),
      })),
  'connected-peers': ({ presence }, replicaId) =>
    [...presence.replicas()].filter((id) => id !== replicaId).map((Id) => ({ Id, Connected: true })),
  'terminator-costs': async ({ changeLog }, replicaId) => ({
    terminators: await costsOfReplica(changeLog.db, replicaId),
  }),
}

async function ofReplica(deps: InspectDeps, appId: string, names: readonly string[]): Promise<Answer> {
  const values: InspectedValue[] = []
  for (const name of names) {
    const read = Object.hasOwn(replicaValues, name) ? replicaValues[name] : undefined
    if (read) values.push({ appId, name, value: JSON.stringify(await read(deps, appId)) })
  }
  return { errors: [], values }
}

function bounded(answers: readonly Answer[]): { errors: string[]; values: InspectedValue[] } {
  const errors = answers.flatMap((answer) => answer.errors)
  const values: InspectedValue[] = []
  let bytes = 0
  for (const value of answers.flatMap((answer) => answer.values)) {
    bytes += Buffer.byteLength(value.value) + 200
    if (bytes > MAX_INSPECTION_BYTES)
      return { errors: [...errors, 'the values are too large: name fewer routers'], values }
    values.push(value)
  }
  return { errors, values }
}
