import type { Message, Outgoing } from '@overlay/channel'
import { openOutage } from '@overlay/process/async'
import { RouterOffline } from '../channel/router-channel.js'
import {
  COMMAND_CLEANUP_MS,
  COMMAND_POLL_IDLE_MS,
  COMMAND_POLL_MS,
  COMMAND_POLL_WITHOUT_BUS_MS,
} from '../limits.js'
import { deleteOldCommands, storeAnswer, takeCommands } from '../store/router-command.js'
import type { CommandOptions } from './command-sender.js'
import { openExecutedCommands } from './executed-commands.js'
import {
  type CommandAnswer,
  type CommandOutcome,
  type CommandReport,
  commandSubject,
  decodeRouterMessage,
  encodeRouterMessage,
  fitsBus,
  type RouterCommand,
  reportSubject,
  waitedForMs,
} from './router-command.js'

export interface ReceiverOptions extends CommandOptions {
  readonly replicaId: string
  /**
   * Sends a message to a router of this replica and returns the reply; undefined where `timeoutMs` is 0. Throws
   * RouterOffline if the router is not here.
   */
  execute(routerId: string, message: Outgoing, timeoutMs: number): Promise<Message | undefined>
  /** Whether routers are connected to this replica. */
  hasRouters(): boolean
}

/** Executes the commands for this replica. A command is executed once, however often it arrives. */
export function openCommandReceiver(options: ReceiverOptions): AsyncDisposable {
  const { db, bus, log, replicaId, execute, hasRouters } = options
  const executed = openExecutedCommands()

  const outcomeOf = (command: RouterCommand): Promise<CommandOutcome> =>
    executed.once(command, async () => {
      const answer = await run(command)
      if (fitsBus({ answer })) return { answer }
      if (await store(command, answer)) return { isStored: true }
      return { answer: { failure: 'the answer is too large for the bus, and not stored', isOffline: false } }
    })

  async function run({ routerId, message, timeoutMs }: RouterCommand): Promise<CommandAnswer> {
    try {
      const reply = await execute(routerId, decodeRouterMessage(message), timeoutMs)
      return { reply: reply ? encodeRouterMessage(reply) : null }
    } catch (err) {
      return {
        failure: err instanceof Error ? err.message : String(err),
        isOffline: err instanceof RouterOffline,
      }
    }
  }

  const commands = bus.subscribe(commandSubject(replicaId), async (message) => {
    const command = message as RouterCommand
    const { id, from } = command
    const report = (report: CommandReport): void => bus.publish(reportSubject(from), report)
    const outcome = outcomeOf(command)
    report({ id })
    report({ id, ...(await outcome) })
  })

  async function store(command: RouterCommand, answer: CommandAnswer): Promise<boolean> {
    try {
      await storeAnswer(db, replicaId, { id: command.id, answer }, waitedForMs(command))
      return true
    } catch (err) {
      log.warn({ err, routerId: command.routerId }, 'answer of a router not passed on')
      return false
    }
  }

  async function executeStored(command: RouterCommand): Promise<void> {
    const { answer } = await outcomeOf(command)
    if (answer) await store(command, answer)
  }

  const outage = openOutage((err) => log.warn({ err }, 'commands of other replicas not read'), { lastsMs: 0 })
  let cleanedAt = performance.now()
  let polledAt = Number.NEGATIVE_INFINITY
  async function poll(): Promise<void> {
    executed.dropOld()
    const isAtRest = bus.connected() && !hasRouters()
    if (isAtRest && performance.now() - polledAt < COMMAND_POLL_IDLE_MS) return
    polledAt = performance.now()
    try {
      for (const { command } of await takeCommands(db, replicaId))
        void executeStored(command as RouterCommand)
      if (performance.now() - cleanedAt > COMMAND_CLEANUP_MS) {
        cleanedAt = performance.now()
        await deleteOldCommands(db)
      }
      outage.works()
    } catch (err) {
      outage.failed(err)
    }
  }

  let isStopped = false
  let wake: NodeJS.Timeout | undefined
  let polling: Promise<void> | undefined
  function schedule(): void {
    if (isStopped) return
    wake = setTimeout(
      () => {
        polling = poll().then(schedule)
      },
      bus.connected() ? COMMAND_POLL_MS : COMMAND_POLL_WITHOUT_BUS_MS,
    )
  }
  schedule()

  return {
    async [Symbol.asyncDispose]() {
      isStopped = true
      commands[Symbol.dispose]()
      clearTimeout(wake)
      await polling
      outage[Symbol.dispose]()
    },
  }
}
