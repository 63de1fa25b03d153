import {
  DataState,
  DataStateChangeSet,
  decodeText,
  MESSAGE_LIMITS,
  type Message,
  modelHeader,
  modelType,
  SubscribeToDataModelRequest,
  ValidateDataStateRequest,
  ValidateDataStateResponse,
} from '@overlay/channel'
import { openAlarm } from '@overlay/process/async'
import { channelPair } from '../../../packages/channel/testing/channel-pair.js'
import { countsOf, differences } from '../../../packages/channel/testing/model-contents.js'
import { openStrictModel } from '../../../packages/channel/testing/strict-model.js'
import type { RevocationListener } from '../src/access/access-concern.js'
import { openApiSessions } from '../src/access/api-sessions.js'
import { openDispatch } from '../src/channel/dispatch.js'
import type { RouterChannel } from '../src/channel/router-channel.js'
import { NO_FEATURES, type RouterFeatures } from '../src/domain/router-features.js'
import { type ModelDeps, modelConcern } from '../src/model/model-concern.js'
import { fakeIdentity } from './access.js'
import { fakeModels, fakePki } from './models.js'
import { log } from './store.js'

const SYNTHETIC = 'synthetic'
let routerCount = 0

export interface ModelNetworkOptions
  extends Partial<Pick<ModelDeps, 'repeatMs' | 'checkMs' | 'recheckMs' | 'now'>> {
  readonly policy?: ReturnType<typeof fakeModels>
  readonly pki?: ReturnType<typeof fakePki>
  readonly identity?: ReturnType<typeof fakeIdentity>
}

/** The concern of one replica with fakes of the other services, and routers that are connected to it over TLS. */
export async function startModels({
  policy = fakeModels(),
  pki = fakePki(),
  identity = fakeIdentity(),
  ...options
}: ModelNetworkOptions = {}) {
  await using opening = new AsyncDisposableStack()
  const channels = new Map<string, RouterChannel>()
  const synced = new Set<string>()
  const listeners: RevocationListener[] = []
  const nothing = () => undefined
  const apiSessions = opening.use(
    await openApiSessions(
      identity.source,
      {
        ...{ added: nothing, updated: nothing, removed: nothing, identityChanged: nothing, applied: nothing },
        revoked: (...args) => listeners.map((one) => one.revoked(...args)),
        reinstated: (id) => listeners.map((one) => one.reinstated(id)),
        reloaded: () => listeners.map((one) => one.reloaded()),
      },
      log,
    ),
  )
  const concern = opening.use(
    await modelConcern({
      channels,
      policy,
      pki,
      access: { apiSessions, onRevocations: (listener) => void listeners.push(listener) },
      sync: {
        started: ({ routerId }) => void synced.delete(routerId),
        done: ({ routerId }) => void synced.add(routerId),
      },
      log,
      repeatMs: 0,
      ...options,
    }),
  )
  const dispatch = openDispatch([concern], log)
  const opened = opening.move()

  /** A router of 2.x, or another one. `former`: the same router, with what it has. */
  async function connect(
    features: RouterFeatures = { ...NO_FEATURES, hasDataModel: true, isGrouped: true, comparesModel: true },
    former?: TestModelRouter,
  ): Promise<TestModelRouter> {
    const routerId = former?.routerId ?? `model-router-${routerCount++}`
    const arrived = openAlarm()
    const never = new AbortController().signal
    const own = former?.own ?? newRouter()
    const { violations, kinds, model } = own
    let subscriptionId = ''
    const router: TestModelRouter = {
      ...{ routerId, own, violations, kinds, model },
      get channel() {
        return pair.peer
      },
      get controllerChannel() {
        return pair.channel
      },
      isSynced: () => synced.has(routerId),
      stall: () => void pair.peerSocket.pause(),
      subscribe(some = {}) {
        if (!some.renew) subscriptionId = features.isGrouped ? `subscription-${own.nextSubscription++}` : ''
        const request = SubscribeToDataModelRequest.fromPartial({
          currentIndex: model.index,
          timelineId: model.timeline,
          subscriptionDurationSeconds: 300,
          subscriptionId,
          ...some,
        })
        pair.peer.send({
          type: modelType.subscribe,
          body: SubscribeToDataModelRequest.encode(request).finish(),
        })
      },
      async until(condition) {
        while (!condition()) await arrived.sleep(never, 100)
      },
    }
    function receive(message: Message): void {
      const header = message.headers.get(modelHeader.subscriptionId)
      const isCurrent = !header || decodeText(header) === subscriptionId
      if (message.type === modelType.dataState && isCurrent) {
        model.replace(DataState.decode(message.body))
        kinds.push('full')
      } else if (message.type === modelType.changeSet && isCurrent) {
        const set = DataStateChangeSet.decode(message.body)
        const result = model.apply(set)
        kinds.push(set.isSynthetic ? SYNTHETIC : result)
        if (result === 'gap') router.subscribe()
      } else if (message.type === modelType.validate) answerValidation(message)
      arrived.ring()
    }
    function answerValidation(message: Message): void {
      const { state } = ValidateDataStateRequest.decode(message.body)
      const right = openStrictModel((violation) => violations.push(violation))
      if (state) right.replace(DataState.fromPartial({ ...state, timelineId: 'any' }))
      if (!features.comparesModel) violations.push('routers before 2.0.1 may die of a comparison')
      kinds.push('validated')
      const body = ValidateDataStateResponse.encode({
        origEntityCounts: countsOf(right.contents),
        copyEntityCounts: countsOf(model.contents),
        diffs: differences(right.contents, model.contents),
      }).finish()
      pair.peer.reply(message, { type: modelType.validateResponse, body })
    }
    const routerChannel = () => channels.get(routerId)
    const pair = opened.use(
      await channelPair(
        {
          onMessage(message) {
            const router = routerChannel()
            return router && dispatch(message, router)
          },
          limits: { ...MESSAGE_LIMITS, skippedBytes: 64 * 1024 * 1024 },
        },
        { onMessage: receive, limits: { headersBytes: 4096, bodyBytes: 100_000_000 } },
      ),
    )
    const connected: RouterChannel = {
      ...{ routerId, channel: pair.channel, fingerprint: '', connectedAt: new Date(), features },
      ...{ isReconnection: false, linkListeners: Buffer.alloc(0) },
    }
    channels.set(routerId, connected)
    pair.channel.closed.addEventListener('abort', () => void concern.disconnected?.(connected))
    return router
  }

  return {
    ...{ policy, pki, identity, concern, connect },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** What a router keeps while it is offline. */
function newRouter() {
  const violations: string[] = []
  const kinds: string[] = []
  return {
    violations,
    /** What it received, in order: full, synthetic, validated, or how it took a change set. */
    kinds,
    model: openStrictModel((violation) => violations.push(violation)),
    nextSubscription: 1,
  }
}

export interface TestModelRouter
  extends Pick<ReturnType<typeof newRouter>, 'violations' | 'kinds' | 'model'> {
  readonly routerId: string
  readonly own: ReturnType<typeof newRouter>
  readonly channel: Awaited<ReturnType<typeof channelPair>>['peer']
  readonly controllerChannel: Awaited<ReturnType<typeof channelPair>>['channel']
  isSynced(): boolean
  /** Takes nothing more. */
  stall(): void
  /** With what it has, unless told otherwise. */
  subscribe(request?: Partial<SubscribeToDataModelRequest>): void
  until(condition: () => boolean): Promise<void>
}
