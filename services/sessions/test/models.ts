import { randomUUID } from 'node:crypto'
import { DataState, DataStateChangeSet, ModelAction, ModelEvent } from '@overlay/channel'
import { openAlarm } from '@overlay/process/async'
import {
  type Change,
  type Context,
  Fault,
  type RouterModelPart,
  type WatchRouterModelRequest,
} from '@overlay/rpc'
import type { Source } from '@overlay/store/change-log'
import { newTokenKey, publishedKeys, type TestKey } from '../../../packages/process/testing/tokens.js'
import type { KeyOwner } from '../src/model/published-keys.js'

export const identityEvent = (id: string, action = ModelAction.CREATE): ModelEvent =>
  ModelEvent.fromPartial({ action, identity: { id, name: id } })

/** Policy, as far as it streams the models of routers. All routers have the same. */
export function fakeModels() {
  const entities = new Map<string, ModelEvent>()
  let sets: { readonly index: number; readonly changes: readonly ModelEvent[] }[] = []
  let timeline = randomUUID()
  let first = 7 // of the oldest index from which it can continue
  let index = first
  let isAway = false
  let isSlow = false
  let waits = 0
  const moved = openAlarm()
  const requests: WatchRouterModelRequest[] = []
  const part = (some: Partial<RouterModelPart>): RouterModelPart => ({
    ...{ isFull: false, events: Buffer.alloc(0), isLast: true, timeline, index: 0, previousIndex: 0 },
    ...some,
  })
  const encoded = (events: readonly ModelEvent[]) =>
    Buffer.from(DataState.encode(DataState.fromPartial({ events: [...events] })).finish())
  const encodedChanges = (changes: readonly ModelEvent[]) =>
    Buffer.from(DataStateChangeSet.encode(DataStateChangeSet.fromPartial({ changes: [...changes] })).finish())

  async function* watchRouterModel(request: WatchRouterModelRequest, { signal }: Pick<Context, 'signal'>) {
    requests.push(request)
    if (isAway) throw new Fault('UNAVAILABLE')
    let at = request.index
    if (request.once || request.timeline !== timeline || at < first || at > index) {
      at = index
      for (const event of entities.values())
        yield part({ isFull: true, events: encoded([event]), isLast: false })
      yield part({ isFull: true, index })
      if (request.once) return
    }
    const own = timeline
    while (!signal.aborted) {
      if (isAway || timeline !== own || at < first) throw new Fault('UNAVAILABLE')
      for (const set of sets) {
        if (set.index <= at) continue
        while (isSlow && !signal.aborted) {
          yield part({ isLast: false })
          waits++
          await moved.sleep(signal, 10)
        }
        const [head, ...rest] = set.changes
        if (head && rest.length > 0) yield part({ events: encodedChanges([head]), isLast: false })
        yield part({
          events: encodedChanges(rest.length > 0 ? rest : set.changes),
          index: set.index,
          previousIndex: at,
        })
        at = set.index
      }
      yield part({})
      if (at === index) await moved.sleep(signal, 500)
    }
  }
  return {
    watchRouterModel,
    requests,
    index: () => index,
    commit(...changes: readonly ModelEvent[]): void {
      index += 10 // indexes need not be dense
      for (const event of changes)
        if (event.identity && event.action === ModelAction.DELETE) entities.delete(event.identity.id)
        else if (event.identity) entities.set(event.identity.id, event)
      sets.push({ index, changes })
      moved.ring()
    },
    /** It can no longer continue from an index before that of now. */
    forget(): void {
      first = index
      sets = []
    },
    /** A restored backup. */
    restore(): void {
      timeline = randomUUID()
      index = first = 3
      sets = []
      moved.ring()
    },
    /** It cannot make a set yet, and says that it lives. */
    setSlow(now: boolean): void {
      isSlow = now
      moved.ring()
    },
    /** How often it has said so. */
    waits: () => waits,
    setAway(now: boolean): void {
      isAway = now
      moved.ring()
    },
  }
}

/** Pki, as far as it publishes keys. */
export function fakePki(firstKeys: readonly TestKey[] = [], firstAuthorities: readonly string[] = []) {
  let keys = firstKeys
  let authorities = firstAuthorities
  let isAway = false
  const changes: Change[] = []
  const moved = openAlarm()
  const head = () => ({ timeline: 'pki', number: changes.length })
  const message = (after: number) => ({
    ...{ upto: head(), after: { timeline: 'pki', number: after }, changes: changes.slice(after) },
    ...{ more: false, ageMs: 0 },
  })
  const append = (kind: string, id: string, row: object): void => {
    const json = Buffer.from(JSON.stringify(row))
    changes.push({ kind, id, json, atMs: Date.now(), number: changes.length + 1 })
    moved.ring()
  }
  const source: Source = {
    schema: 'pki',
    async *load() {
      const cas = changes.filter(({ kind }) => kind === 'cas')
      yield { ...message(changes.length), after: undefined, changes: cas }
    },
    async *watch({ number }, signal) {
      for (let at = number; !signal.aborted; ) {
        const next = message(at)
        at = next.upto.number
        yield next
        if (at === changes.length) await moved.sleep(signal, 500)
      }
    },
    pull: async ({ number }) => message(number),
    row: async () => Buffer.alloc(0),
  }
  const calls: KeyOwner['calls'] = {
    async getTokenKeys() {
      if (isAway) throw new Fault('UNAVAILABLE')
      return publishedKeys(keys, [newTokenKey('server')])
    },
    async getTrustBundle() {
      if (isAway) throw new Fault('UNAVAILABLE')
      return { pems: [...authorities], trustDomain: 'test', keyId: '1' }
    },
  }
  return {
    source,
    calls,
    replaceKeys(next: readonly TestKey[], nextAuthorities: readonly string[] = authorities): void {
      keys = next
      authorities = nextAuthorities
      append('keys', 'k', {})
    },
    putCa: (id: string, row: { readonly isVerified: boolean; readonly certPem: string }) =>
      append('cas', id, row),
    setAway(now: boolean): void {
      isAway = now
    },
  }
}
