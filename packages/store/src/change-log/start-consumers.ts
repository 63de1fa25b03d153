import { kinds } from '@overlay/model'
import type { Logger } from 'pino'
import type { ChangeLog } from './change-log.js'
import { type Consumer, startConsumer } from './consumer.js'
import { recordingDeletions } from './deleted-entities.js'
import type { Effects } from './effects.js'
import type { Source } from './source.js'

/** What a service does when another one's rows change. */
export interface ConsumerDefinition {
  readonly source: Source
  readonly effects: Effects
  /** Kinds of the source that rows of this schema name: their deletions are recorded for writers. */
  readonly recordsDeletionsOf?: readonly string[]
}

/** By name; `changeService` and checks take names of schemas. */
export type Consumers<Name extends string> = Readonly<Record<Name, Consumer>> & {
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** Starts all consumers of a service. They stop in reverse order. Fails for a kind whose writes leave no change rows. */
export function startConsumers<Name extends string>(
  changeLog: ChangeLog,
  definitions: Readonly<Record<Name, ConsumerDefinition>>,
  log: Logger,
): Consumers<Name> {
  for (const { effects } of Object.values<ConsumerDefinition>(definitions))
    for (const kind of effects.kinds)
      if (kinds.get(kind)?.followed === false) throw new Error(`${kind} is not followed: see its definition`)
  const opened = new AsyncDisposableStack()
  const started = Object.entries<ConsumerDefinition>(definitions).map(
    ([name, { source, effects, recordsDeletionsOf = [] }]) => {
      const recording =
        recordsDeletionsOf.length > 0
          ? recordingDeletions(source.schema, recordsDeletionsOf, effects)
          : effects
      return [name, opened.use(startConsumer(changeLog, source, recording, log))] as const
    },
  )
  return {
    ...(Object.fromEntries(started) as Record<Name, Consumer>),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
