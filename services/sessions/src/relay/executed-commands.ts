import { MAX_ANSWER_BYTES, MAX_EXECUTED_COMMANDS } from '../limits.js'
import { type CommandOutcome, type RouterCommand, waitedForMs } from './router-command.js'

interface Kept {
  readonly bytes: number
  readonly until: number
}

const dropped: Promise<CommandOutcome> = Promise.resolve({
  answer: { failure: 'the answer is no longer kept', isOffline: false },
})

/**
 * The commands that this replica has executed: one that arrives again is not executed, and has the same answer. Ids are
 * kept for longer than answers: a command may be delayed, and an id needs little
 * memory.
 */
export function openExecutedCommands({ maxBytes = MAX_ANSWER_BYTES, now = () => performance.now() } = {}) {
  const outcomes = new Map<string, Promise<CommandOutcome>>() // oldest first
  const kept = new Map<string, Kept>() // of finished commands, oldest first
  let keptBytes = 0

  /** Drops answers whose senders have stopped waiting. */
  function dropOld(): void {
    for (const [id, { bytes, until }] of kept) {
      if (keptBytes <= maxBytes && now() <= until) break
      kept.delete(id)
      keptBytes -= bytes
      if (outcomes.has(id)) outcomes.set(id, dropped)
    }
  }

  async function run(command: RouterCommand, execute: () => Promise<CommandOutcome>) {
    const until = now() + waitedForMs(command)
    const outcome = await execute()
    const bytes = JSON.stringify(outcome).length
    kept.set(command.id, { bytes, until })
    keptBytes += bytes
    dropOld()
    return outcome
  }

  return {
    /** Executes a command, unless it was executed before. `execute` never fails. */
    once(command: RouterCommand, execute: () => Promise<CommandOutcome>): Promise<CommandOutcome> {
      const before = outcomes.get(command.id)
      if (before) return before
      const outcome = run(command, execute)
      outcomes.set(command.id, outcome)
      for (const id of outcomes.keys()) {
        if (outcomes.size <= MAX_EXECUTED_COMMANDS) break
        outcomes.delete(id)
      }
      return outcome
    },
    dropOld,
  }
}
