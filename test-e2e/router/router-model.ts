import { randomUUID } from 'node:crypto'
import {
  DataState,
  DataStateChangeSet,
  encodeUint64,
  type Message,
  type ModelEvent,
  type Outgoing,
  SubscribeToDataModelRequest,
  ValidateDataStateRequest,
  ValidateDataStateResponse,
} from '@overlay/channel'
import { countsOf, differences, type ModelContents } from '../../packages/channel/testing/model-contents.js'
import { type ModelState, openStrictModel } from '../../packages/channel/testing/strict-model.js'
import type { Controller, Controllers } from './controllers.js'
import { controllerBit, hasBit, type Line, modelHeader, modelType } from './lines.js'

/** The data model of a router: one subscription, at any of its controllers. */
export interface RouterModel extends Disposable, ModelState {
  /** Routers before 2.0 have a model if their controllers do. */
  readonly isOn: boolean
  /** Rules that controllers have broken. Tests expect none. */
  readonly violations: readonly string[]
  /** Id of the controller that it is subscribed to. */
  readonly source: string | undefined
  /** What has arrived from the subscription. */
  readonly received: { readonly fullStates: number; readonly changeSets: number }
  /** What the ClientHello says. */
  clientHelloHeaders(): Map<number, Buffer>
  connected(controller: Controller): void
  disconnected(controller: Controller): void
  /** Extends the subscription, as routers do every 5 minutes. */
  renew(): void
  /** Forgets the index, as routers do when they cannot keep up. */
  resync(): void
  readonly handlers: Readonly<Record<number, (message: Message, controller: Controller) => void>>
}

export interface RouterModelOptions {
  readonly line: Line
  readonly controllers: () => Controllers
  /** What a former process has stored. */
  readonly stored?: ModelState | undefined
  /** The contents have changed. */
  onChange(contents: ModelContents): void
}

const DURATION_SECONDS = 300
/** Names of the counts in answers to a validation. */
const countNames: Readonly<Record<keyof ModelContents, string>> = {
  configType: 'configType',
  config: 'configs',
  identity: 'identities',
  service: 'Services',
  'service-policy': 'service-policies',
  'posture-check': 'posture-checks',
  'public-keys': 'public-keys',
  revocations: 'revocations',
}

export function openRouterModel({ line, controllers, stored, onChange }: RouterModelOptions): RouterModel {
  const violations: string[] = []
  const violated = (violation: string): void => void violations.push(violation)
  const model = openStrictModel(violated, stored)
  const received = { fullStates: 0, changeSets: 0 }
  /** Subscriptions by the controllers that are connected and have got one, newest last. */
  const asked = new Map<Controller, string[]>()
  let subscription: { readonly controller: Controller; readonly id: string } | undefined
  let isOn = line === '2.0'
  const renewal = setInterval(renew, DURATION_SECONDS * 1000).unref()

  /** @param from 0: a full state is wanted */
  function subscribe(controller: Controller, renew = false, from = model.index): void {
    const id = renew && subscription ? subscription.id : line === '2.0' ? randomUUID().slice(0, 9) : ''
    subscription = { controller, id }
    asked.set(controller, [...(asked.get(controller) ?? []), id])
    controller.channel.send({
      type: modelType.subscribe,
      body: SubscribeToDataModelRequest.encode({
        currentIndex: from,
        subscriptionDurationSeconds: DURATION_SECONDS,
        renew,
        timelineId: model.timeline,
        subscriptionId: id,
      }).finish(),
    })
  }

  function renew(): void {
    if (subscription) subscribe(subscription.controller, true)
  }

  /** Subscribes to any controller unless there is a subscription. */
  function keepSubscribed(from = model.index): void {
    const controller = controllers().any()
    if (isOn && !subscription && controller) subscribe(controller, false, from)
  }

  /** Whether the model takes this. What is late is no violation, what was never asked for is one. */
  function isExpected({ headers }: Message, controller: Controller, isSynthetic: boolean): boolean {
    const ids = asked.get(controller) ?? []
    const id = headers.get(modelHeader.subscriptionId)?.toString()
    if (!isSynthetic && ids.length === 0) violated(`data of ${controller.id} without a subscription`)
    if (!isSynthetic && id === undefined && line === '2.0') violated('data without the id of a subscription')
    if (line === '2.0' && id !== undefined && !ids.includes(id))
      violated(`data of an unknown subscription ${id}`)
    const isOfThis = id === undefined || line !== '2.0' || id === subscription?.id
    return isOfThis && (isSynthetic || controller === subscription?.controller)
  }

  /** Routers before 2.0 die when a validation compares a revocation that they have. */
  function refuseRevocations(events: readonly ModelEvent[]): void {
    if (line !== '2.0' && events.some(({ revocation }) => revocation))
      violated('a revocation for a router before 2.0')
  }

  function takeState(message: Message, controller: Controller): void {
    if (!isExpected(message, controller, false)) return
    received.fullStates++
    const state = DataState.decode(message.body)
    refuseRevocations(state.events)
    model.replace(state)
    onChange(model.contents)
  }

  function takeChanges(message: Message, controller: Controller): void {
    const set = DataStateChangeSet.decode(message.body)
    if (!isExpected(message, controller, set.isSynthetic)) return
    if (!set.isSynthetic) received.changeSets++
    refuseRevocations(set.changes)
    if (model.apply(set) === 'gap') {
      subscription = undefined
      keepSubscribed()
    }
    onChange(model.contents)
  }

  /** Compares the model with one that the controller sends, and takes that in its place if it says so. */
  function validate(message: Message, { channel }: Controller): void {
    const { state, fix } = ValidateDataStateRequest.decode(message.body)
    const expected = openStrictModel(violated)
    refuseRevocations(state?.events ?? [])
    // the timeline of a validation does not count
    if (state) expected.replace({ ...state, timelineId: state.timelineId || model.timeline || 'any' })
    const diffs = differences(expected.contents, model.contents)
    const named = (contents: ModelContents): Map<string, number> =>
      new Map([...countsOf(contents)].map(([kind, n]) => [countNames[kind as keyof ModelContents], n]))
    const body = ValidateDataStateResponse.encode({
      origEntityCounts: named(expected.contents),
      copyEntityCounts: named(model.contents),
      diffs,
    }).finish()
    if (fix && state && diffs.length > 0) {
      model.replace(state)
      onChange(model.contents)
      subscription = undefined
      keepSubscribed()
    }
    channel.reply(message, { type: modelType.validated, body } satisfies Outgoing)
  }

  return {
    get isOn() {
      return isOn
    },
    get index() {
      return model.index
    },
    get timeline() {
      return model.timeline
    },
    get contents() {
      return model.contents
    },
    get source() {
      return subscription?.controller.id
    },
    violations,
    received,
    clientHelloHeaders: () =>
      new Map(
        isOn
          ? [
              [modelHeader.supportsIndex, Buffer.of(1)],
              [modelHeader.index, encodeUint64(model.index)],
            ]
          : [],
      ),
    connected(controller) {
      if (line === '1.6') isOn ||= hasBit(controller.capabilities, controllerBit.routerDataModel)
      keepSubscribed()
    },
    disconnected(controller) {
      asked.delete(controller)
      if (subscription?.controller !== controller) return
      subscription = undefined
      keepSubscribed()
    },
    renew,
    resync() {
      subscription = undefined
      keepSubscribed(0n)
    },
    handlers: {
      [modelType.state]: takeState,
      [modelType.changeSet]: takeChanges,
      [modelType.validate]: validate,
    },
    [Symbol.dispose]: () => clearInterval(renewal),
  }
}
