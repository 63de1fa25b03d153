import { setTimeout as pause } from 'node:timers/promises'
import {
  ApiSessionAdded,
  ApiSessionUpdated,
  CreateTerminatorResult,
  CreateTerminatorV2Response,
  CreateTunnelTerminatorV2Response,
  ctrlType,
  DataState,
  DataStateChangeSet,
  edgeType,
  type Message,
  ModelAction,
  type ModelEvent,
  modelType,
  ServiceList,
} from '@overlay/channel'
import type { Admin } from '../admin.js'
import type { Server } from '../client.js'
import { type Controller, openControllers } from '../router/controllers.js'
import { enrollRouter } from '../router/identity.js'
import type { Line } from '../router/lines.js'
import {
  claims,
  type Foreign,
  type HostileMessage,
  hostileMessage,
  typesInShapes,
} from './hostile-messages.js'
import { dealer, type Random } from './random.js'
import { type Report, rules } from './report.js'

/** A router in no policy that sends every message at its limits, to all controllers, until disposed. */
export interface HostileRouter extends AsyncDisposable {
  readonly id: string
  /** From now on its messages name these ids. */
  name(foreign: Foreign): void
}

export interface HostileNetwork {
  readonly server: Server
  /** `host:port` of each replica of sessions. */
  readonly controllers: readonly string[]
  readonly admin: Admin
}

export interface HostileOptions {
  readonly report: Report
  readonly random: Random
  /** Whether the product accepts a token that the router has received. */
  isAccepted(token: string): Promise<boolean>
}

/** What it says it is: another line at each replica. */
const lines: readonly [Line, ...Line[]] = ['2.0', '1.1', '1.6']
const BYTES_PER_SECOND = 2 * 1024 * 1024
const LEAST_PAUSE_MS = 20
const FLOOD_PAUSE_MS = 1000
/** Of all messages; the others claim what others have. */
const SHARE_OF_SHAPES = 0.7

export async function startHostileRouter(
  { server, controllers, admin }: HostileNetwork,
  { report, random, isAccepted }: HostileOptions,
): Promise<HostileRouter> {
  const identity = await enrollRouter(admin, server, { name: 'soak-hostile' })
  const stopping = new AbortController()
  const deal = dealer(random, () => typesInShapes)
  let foreign: Foreign = { terminators: [], links: [], circuits: [], routers: [], services: [], sessions: [] }
  /** Types that have come: one may come with each login, and is reported once. */
  const granted = new Set<number>()
  let tested: Promise<void> = Promise.resolve()

  function next(): HostileMessage | undefined {
    const dealt = random.coin(SHARE_OF_SHAPES) ? deal() : undefined
    if (dealt) return hostileMessage(...dealt, foreign, random)
    return random.pick(claims(foreign, identity.id, random))
  }

  async function send({ channel }: Controller): Promise<void> {
    while (!channel.closed.aborted) {
      const sent = next()
      if (!sent) continue
      report.note('messages of the hostile router')
      report.log('hostile', { type: sent.message.type, shape: sent.shape })
      for (let left = sent.times; left > 0; left -= 1) channel.send(sent.message)
      const { body, headers } = sent.message
      const bytes = [...(headers ?? [])].reduce((sum, [, value]) => sum + value.length, body?.length ?? 0)
      await channel.drained()
      const ms = Math.max(LEAST_PAUSE_MS, (bytes / BYTES_PER_SECOND) * 1000)
      await pause(sent.times > 1 ? FLOOD_PAUSE_MS : ms, undefined, { signal: stopping.signal })
    }
  }

  function receive(message: Message): void {
    for (const token of tokensIn(message))
      tested = tested.then(() => judge(message.type, () => isAccepted(token)))
    tested = tested.then(() => judge(message.type, async () => isGrant(message)))
  }

  async function judge(type: number, isGranted: () => Promise<boolean>): Promise<void> {
    if (stopping.signal.aborted || granted.has(type)) return
    if (!(await isGranted())) return report.passed(rules.isolated)
    granted.add(type)
    report.violated(rules.isolated, { type })
  }

  const connections = controllers.map((address, at) =>
    openControllers({
      identity,
      addresses: [address],
      line: lines[at % lines.length] ?? lines[0],
      onMessage: receive,
      onConnected(controller) {
        report.note('connections of the hostile router')
        report.passed(rules.isolated)
        send(controller).catch(() => undefined) // closed; it connects again
      },
      onRefused(address, err) {
        report.note('refused connections of the hostile router')
        report.log('refused', { address, error: String(err) })
      },
    }),
  )
  for (const one of connections) one.start()
  return {
    id: identity.id,
    name(ids) {
      foreign = ids
    },
    async [Symbol.asyncDispose]() {
      stopping.abort()
      for (const one of connections) await one[Symbol.asyncDispose]()
      await tested
    },
  }
}

/** Answers that give a router a session, a circuit or a terminator, by type. */
const grantingTypes: ReadonlySet<number> = new Set([
  ctrlType.route,
  ctrlType.circuitSuccess,
  ...Object.entries(edgeType)
    .filter(([name]) => /^create.*Response$/.test(name))
    .map(([, type]) => type),
])

/** Tokens of API sessions. A state without sessions has one that nothing accepts. */
export function tokensIn({ type, body }: Pick<Message, 'type' | 'body'>): string[] {
  const codec =
    type === edgeType.apiSessionAdded
      ? ApiSessionAdded
      : type === edgeType.apiSessionUpdated
        ? ApiSessionUpdated
        : undefined
  return codec?.decode(body).apiSessions.map(({ token }) => token) ?? []
}

/** Whether a message gives the router what only a router with grants may have, besides tokens. */
export function isGrant({ type, body }: Pick<Message, 'type' | 'body'>): boolean {
  if (type === edgeType.serviceList) return ServiceList.decode(body).services.length > 0
  if (type === edgeType.createTerminatorV2Response)
    return CreateTerminatorV2Response.decode(body).result === CreateTerminatorResult.SUCCESS
  if (type === edgeType.createTunnelTerminatorV2Response)
    return CreateTunnelTerminatorV2Response.decode(body).result === CreateTerminatorResult.SUCCESS
  if (type === modelType.dataState) return DataState.decode(body).events.some(isOfPolicies)
  if (type === modelType.changeSet) return DataStateChangeSet.decode(body).changes.some(isOfPolicies)
  return grantingTypes.has(type)
}

/** Of what only policies show to a router. Deletions say nothing about what is left. */
const isOfPolicies = ({ action, ...content }: ModelEvent): boolean =>
  action !== ModelAction.DELETE &&
  [
    content.identity,
    content.service,
    content.servicePolicy,
    content.servicePolicyChange,
    content.config,
    content.postureCheck,
  ].some((one) => one !== undefined)
