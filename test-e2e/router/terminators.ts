import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import {
  CreateTerminatorResult,
  CreateTerminatorV2Request,
  CreateTerminatorV2Response,
  ctrlType,
  edgeType,
  InvalidTerminatorReason,
  type Message,
  RemoveFabricTerminatorsRequest,
  type RouterTerminatorState,
  type TerminatorPrecedence,
  TerminatorRetryHint,
  UpdateTerminatorRequest,
  ValidateTerminatorsV2Request,
  ValidateTerminatorsV2Response,
} from '@overlay/channel'
import type { Controller, Controllers } from './controllers.js'

/** What an SDK asks for when it hosts a service. */
export interface Binding {
  readonly sessionToken: string
  readonly fingerprints: readonly string[]
  /** Of the API session; empty if it goes without saying. */
  apiSessionToken(): string
  /** The controller that decides for the SDK. */
  controller(): Controller | undefined
  readonly connId: number
  /** Chosen by the SDK: a later binding with the same id replaces this one. */
  readonly listenerId: string
  readonly cost: number
  readonly precedence: TerminatorPrecedence
  readonly instanceId: string
  readonly instanceSecret: Buffer
  readonly peerData: Map<number, Buffer>
}

/** The SDK that hosts. */
export interface Host {
  /** Its channel is open. */
  isOpen(): boolean
  established(): void
  /** It hosts no more. */
  closed(reason: string): void
  /** Asks the SDK whether it still hosts. */
  stillHosts(): Promise<boolean>
  /** Opens the end of a circuit. Throws if the SDK refuses. */
  dial(circuit: DialedCircuit): Promise<void>
}

export interface DialedCircuit {
  readonly circuitId: string
  readonly controllerId: string
  readonly address: string
  readonly peerData: ReadonlyMap<number, Buffer>
}

export interface Terminator {
  readonly id: string
  readonly binding: Binding
  readonly host: Host
  state: 'establishing' | 'established' | 'deleting'
}

/** What the router hosts itself. */
export interface TunnelHost {
  /** Opens the end of a circuit. */
  dial(circuit: DialedCircuit): Promise<void>
}

export interface Terminators {
  /** Those of the router itself, by id. */
  readonly tunnels: Map<string, TunnelHost>
  all(): Terminator[]
  get(id: string): Terminator | undefined
  bind(binding: Binding, host: Host): void
  /** Changes the cost or precedence of what an SDK hosts with a session. */
  update(terminator: Terminator, change: { readonly cost?: number; readonly precedence?: number }): void
  /** Removes at the controllers, too. */
  remove(terminators: readonly Terminator[], reason: string, notifyHost: boolean): void
  validate(message: Message, controller: Controller): Promise<void>
  /** Creates again what no controller has confirmed since the reconnection. */
  reconnected(): void
}

const REQUEST_MS = 30_000
const RETRY_MS = 500
const MAX_FAILURES = 3

const isBusy = ({ result, retryHint }: CreateTerminatorV2Response): boolean =>
  result === CreateTerminatorResult.BUSY || retryHint === TerminatorRetryHint.BUSY

/** @param confirmMs after a reconnection, controllers have this long to confirm terminators */
export function openTerminators(
  controllers: Controllers,
  confirmMs: number,
  stopping: AbortSignal,
): Terminators {
  const byId = new Map<string, Terminator>()
  const tunnels = new Map<string, TunnelHost>()

  const retry = (): Promise<void> => pause(RETRY_MS, undefined, { signal: stopping }).catch(() => undefined)

  /** Until a controller has answered, or the terminator is no longer wanted. */
  async function establish(terminator: Terminator): Promise<void> {
    let failures = 0
    while (terminator.state === 'establishing' && !stopping.aborted) {
      const response = await requestCreation(terminator).catch(() => undefined)
      if (!response || isBusy(response)) {
        await retry()
      } else if (response.result === CreateTerminatorResult.SUCCESS) {
        if (terminator.state === 'establishing') terminator.state = 'established'
        terminator.host.established()
      } else if (
        response.errorCode > 0 &&
        response.retryHint === TerminatorRetryHint.DEFAULT &&
        ++failures < MAX_FAILURES
      ) {
        await retry()
      } else {
        byId.delete(terminator.id)
        terminator.state = 'deleting'
        terminator.host.closed(response.message)
      }
    }
  }

  async function requestCreation({
    id,
    binding,
  }: Terminator): Promise<CreateTerminatorV2Response | undefined> {
    const { sessionToken, cost, precedence, instanceId, instanceSecret, peerData } = binding
    const body = CreateTerminatorV2Request.encode({
      address: id,
      sessionToken,
      fingerprints: [...binding.fingerprints],
      peerData,
      cost,
      precedence,
      instanceId,
      instanceSecret,
      apiSessionToken: binding.apiSessionToken(),
    }).finish()
    const reply = await binding
      .controller()
      ?.channel.request({ type: edgeType.createTerminatorV2, body }, REQUEST_MS)
    return reply && CreateTerminatorV2Response.decode(reply.body)
  }

  /** Until a controller has answered. */
  async function removeAt(terminatorIds: string[]): Promise<void> {
    const body = RemoveFabricTerminatorsRequest.encode({ terminatorIds }).finish()
    while (!stopping.aborted) {
      const removed = await controllers
        .any()
        ?.channel.request({ type: ctrlType.removeTerminators, body }, REQUEST_MS)
        .catch(() => undefined)
      if (removed) return
      await retry()
    }
  }

  function replaceable({ listenerId }: Binding): Terminator | undefined {
    if (!listenerId) return undefined
    return [...byId.values()].find(
      ({ binding, state }) => binding.listenerId === listenerId && state !== 'deleting',
    )
  }

  /** @param asksHost false: the router's own table decides */
  async function stateOf(id: string, marker: bigint, asksHost: boolean): Promise<RouterTerminatorState> {
    const terminator = byId.get(id)
    if (terminator?.state === 'establishing') terminator.state = 'established'
    const isOfSdk = terminator?.host.isOpen() === true && (!asksHost || (await terminator.host.stillHosts()))
    const valid = isOfSdk || tunnels.has(id)
    const reason = InvalidTerminatorReason.UNKNOWN_TERMINATOR
    return { valid, reason, detail: valid ? '' : 'terminator not found', marker }
  }

  return {
    tunnels,
    all: () => [...byId.values()],
    get: (id) => byId.get(id),
    bind(binding, host) {
      const previous = replaceable(binding)
      const { id, state } = previous ?? { id: randomUUID(), state: 'establishing' as const }
      const terminator: Terminator = { id, binding, host, state }
      byId.set(id, terminator)
      if (previous) {
        previous.state = 'deleting'
        previous.host.closed('found a newer terminator for listener id')
      }
      if (state === 'established') host.established()
      else void establish(terminator)
    },
    update({ id, binding }, { cost, precedence }) {
      const body = UpdateTerminatorRequest.encode({
        sessionToken: binding.sessionToken,
        fingerprints: [...binding.fingerprints],
        terminatorId: id,
        cost: cost ?? 0,
        precedence: precedence ?? 0,
        updateCost: cost !== undefined,
        updatePrecedence: precedence !== undefined,
        apiSessionToken: binding.apiSessionToken(),
      }).finish()
      binding
        .controller()
        ?.channel.request({ type: edgeType.updateTerminator, body }, REQUEST_MS)
        .catch(() => undefined) // routers do not repeat it
    },
    remove(terminators, reason, notifyHost) {
      const present = terminators.filter((one) => byId.get(one.id) === one)
      for (const terminator of present) {
        terminator.state = 'deleting'
        byId.delete(terminator.id)
        if (notifyHost) terminator.host.closed(reason)
      }
      if (present.length > 0) void removeAt(present.map(({ id }) => id))
    },
    async validate(message, { channel }) {
      const { terminators, postCreate } = ValidateTerminatorsV2Request.decode(message.body)
      const states = await Promise.all(
        terminators.map(async ({ id, marker }) => [id, await stateOf(id, marker, !postCreate)] as const),
      )
      const body = ValidateTerminatorsV2Response.encode({ states: new Map(states) }).finish()
      channel.reply(message, { type: ctrlType.validateTerminatorsV2Response, body })
    },
    async reconnected() {
      const unconfirmed = [...byId.values()].filter(({ state }) => state === 'established')
      for (const terminator of unconfirmed) terminator.state = 'establishing'
      await pause(confirmMs, undefined, { signal: stopping }).catch(() => undefined)
      for (const terminator of unconfirmed) void establish(terminator)
    },
  }
}
