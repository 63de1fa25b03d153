import { randomUUID } from 'node:crypto'
import type { Message, Outgoing } from '@overlay/channel'
import type { Bus } from '@overlay/store/change-log'
import type { Db } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { RouterOffline } from '../channel/router-channel.js'
import { ACKNOWLEDGE_MS, ANSWER_POLL_MS, MAX_PENDING_COMMANDS } from '../limits.js'
import { storeCommand, takeAnswers } from '../store/router-command.js'
import {
  type CommandAnswer,
  type CommandReport,
  commandSubject,
  decodeRouterMessage,
  deliveredWithinMs,
  encodeRouterMessage,
  fitsBus,
  type RouterCommand,
  reportSubject,
  waitedForMs,
} from './router-command.js'

export interface CommandOptions {
  readonly db: Db
  readonly bus: Pick<Bus, 'publish' | 'subscribe' | 'connected' | 'onChange'>
  readonly log: Logger
  readonly acknowledgeMs?: number
}

interface Pending {
  readonly replicaId: string
  readonly command: RouterCommand
  /** The answer will be in the database. */
  isStored: boolean
  acknowledge(): void
  settle(answer: CommandAnswer): void
  fail(err: unknown): void
}

/** Commands go over the bus; through the database while it is unavailable, and where no replica acknowledges them. */
export function openCommandSender(options: CommandOptions) {
  const { db, bus, log, acknowledgeMs = ACKNOWLEDGE_MS } = options
  const from = randomUUID()
  const pending = new Map<string, Pending>()

  function submit(replicaId: string, command: RouterCommand): Promise<CommandAnswer> {
    if (pending.size >= MAX_PENDING_COMMANDS)
      throw new Error('too many commands to other replicas are under way')
    const limitMs = waitedForMs(command)
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(unacknowledged)
        clearTimeout(over)
        pending.delete(command.id)
      }
      const waiting: Pending = {
        replicaId,
        command,
        isStored: false,
        acknowledge: () => clearTimeout(unacknowledged),
        settle(answer) {
          end()
          resolve(answer)
        },
        fail(err) {
          end()
          reject(err)
        },
      }
      const timeout = new Error(`replica ${replicaId} has not answered within ${limitMs} ms`)
      const over = setTimeout(() => waiting.fail(timeout), limitMs)
      const unacknowledged = setTimeout(() => void store(waiting), acknowledgeMs)
      pending.set(command.id, waiting)
      if (bus.connected() && fitsBus(command)) bus.publish(commandSubject(replicaId), command)
      else void store(waiting)
    })
  }

  async function store(waiting: Pending): Promise<void> {
    if (waiting.isStored) return
    waiting.isStored = true
    waiting.acknowledge()
    const { replicaId, command } = waiting
    try {
      await storeCommand(db, replicaId, { id: command.id, command }, deliveredWithinMs(command))
      poll()
    } catch (err) {
      waiting.fail(err)
    }
  }

  let isPolling = false
  function poll(): void {
    if (isPolling) return
    isPolling = true
    setTimeout(async () => {
      const stored = [...pending.values()].filter(({ isStored }) => isStored)
      await readAnswers(stored)
      isPolling = false
      if (stored.length > 0) poll()
    }, ANSWER_POLL_MS)
  }

  async function readAnswers(stored: readonly Pending[]): Promise<void> {
    if (stored.length === 0) return
    try {
      const ids = stored.map(({ command }) => command.id)
      for (const { id, answer } of await takeAnswers(db, ids))
        pending.get(id)?.settle(answer as CommandAnswer)
    } catch (err) {
      for (const { fail } of stored) fail(err)
    }
  }

  const reports = bus.subscribe(reportSubject(from), (message) => {
    const { id, answer, isStored } = message as CommandReport
    const waiting = pending.get(id)
    if (!waiting) return
    waiting.acknowledge()
    if (answer) waiting.settle(answer)
    if (!isStored) return
    waiting.isStored = true
    poll()
  })
  // an answer may be lost with the bus, though the command has arrived
  const losses = bus.onChange((connected) => {
    if (!connected) for (const waiting of pending.values()) void store(waiting)
  })

  return {
    /**
     * Sends a message to a router of another replica and returns the reply; undefined where `timeoutMs` is 0, as soon as
     * the message is sent. Throws RouterOffline, or another Error if there is no answer in time.
     */
    async command(
      replicaId: string,
      routerId: string,
      message: Outgoing,
      timeoutMs: number,
    ): Promise<Message | undefined> {
      const id = randomUUID()
      const command = { id, from, routerId, message: encodeRouterMessage(message), timeoutMs }
      const answer = await submit(replicaId, command)
      if ('reply' in answer) return answer.reply ? decodeRouterMessage(answer.reply) : undefined
      log.debug(
        { routerId, replicaId, failure: answer.failure },
        'message to a router of another replica failed',
      )
      throw answer.isOffline ? new RouterOffline(answer.failure) : new Error(answer.failure)
    },
    async [Symbol.asyncDispose]() {
      reports[Symbol.dispose]()
      losses[Symbol.dispose]()
      for (const { fail } of pending.values()) fail(new Error('stopping'))
    },
  }
}
