import { testDatabase } from '@overlay/launcher/testing'
import { type Changes, type Context, ownContext, type Position } from '@overlay/rpc'
import pino from 'pino'
import sql, { type Sql } from 'sql-template-tag'
import type { Bus } from '../src/change-log/bus.js'
import { type ChangeLog, openChangeLog, type RowChange } from '../src/change-log/change-log.js'
import { type Database, onlyRow, openDatabase } from '../src/postgres/database.js'

export const log = pino({ level: 'silent' })

/** One database with the change logs of identity (the owner) and sessions (its follower). */
export interface Streams extends AsyncDisposable {
  readonly bus: TestBus
  /** Another replica, of the owner by default. */
  replica(schema?: 'identity' | 'sessions'): Promise<ChangeLog>
  /** After each test: closes all that it opened. */
  close(): Promise<void>
  /** Connected as the owner of all schemas. */
  readonly admin: Database
  open(schema: 'identity' | 'sessions'): Database
}

export async function openStreams(): Promise<Streams> {
  const database = await testDatabase('identity', 'sessions')
  const admin = openDatabase(database.ownerUrl, 'identity')
  const bus = localBus()
  let opened: AsyncDisposable[] = []
  const closing = <T extends AsyncDisposable>(one: T): T => {
    opened.push(one)
    return one
  }
  const open = (schema: 'identity' | 'sessions') => closing(openDatabase(database.urlOf(schema), schema))
  return {
    bus,
    admin,
    open,
    replica: async (schema = 'identity') => closing(await openChangeLog(open(schema), bus, log)),
    async close() {
      const closed = opened.reverse()
      opened = []
      for (const one of closed) await one[Symbol.asyncDispose]()
      bus.start()
    },
    async [Symbol.asyncDispose]() {
      await admin[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** The bus of all replicas of a test, in memory. */
export interface TestBus extends Bus {
  stop(): void
  start(): void
}

function localBus(): TestBus {
  const handlers = new Set<{ subject: string; handler: (message: unknown, subject: string) => void }>()
  const listeners = new Set<(connected: boolean) => void>()
  let connected = true
  const change = (to: boolean) => {
    connected = to
    for (const listener of listeners) listener(to)
  }
  const added = <T>(set: Set<T>, item: T): Disposable => {
    set.add(item)
    return { [Symbol.dispose]: () => set.delete(item) }
  }
  return {
    publish(subject, message) {
      const listening = connected ? [...handlers].filter((handler) => handler.subject === subject) : []
      setImmediate(() => {
        for (const { handler } of listening) handler(structuredClone(message), subject)
      })
    },
    subscribe: (subject, handler) => added(handlers, { subject, handler }),
    connected: () => connected,
    onChange: (listener) => added(listeners, listener),
    stop: () => change(false),
    start: () => change(true),
    [Symbol.asyncDispose]: async () => undefined,
  }
}

export const context = (signal = new AbortController().signal): Context => ownContext(signal)

/** A change of a followed kind. */
export const rowChange = (id: string, payload: object | null = { id }): RowChange => ({
  kind: 'identities',
  id,
  before: null,
  after: payload,
  payload,
})

export const write = (changeLog: ChangeLog, ...changes: RowChange[]): Promise<Position> =>
  writeAll(changeLog, changes)

export async function writeAll(changeLog: ChangeLog, changes: readonly RowChange[]): Promise<Position> {
  const { position } = await changeLog.write(context(), async () => ({ result: undefined, changes }))
  if (!position) throw new Error('no followed kind was changed')
  return position
}

/** Reads until the position is there. */
export async function collect(
  messages: AsyncIterable<Changes>,
  until: Position,
): Promise<readonly Changes['changes'][number][]> {
  const collected: Changes['changes'] = []
  for await (const { upto, changes } of messages) {
    collected.push(...changes)
    if ((upto?.number ?? 0) >= until.number) break
  }
  return collected
}

export const numbersTo = (last: number, from = 1): readonly number[] =>
  Array.from({ length: last - from + 1 }, (_, index) => from + index)

/** Waits for an effect of other asynchronous work. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
}

export async function countOf(db: Database, from: Sql): Promise<number> {
  const { rows } = await db.query<{ count: number }>(sql`select count(*) from ${from}`)
  return onlyRow(rows).count
}
