import { terminator } from '@overlay/model'
import pino from 'pino'
import { expect, test } from 'vitest'
import type { ChangeLog } from './change-log.js'
import type { Source } from './source.js'
import { startConsumers } from './start-consumers.js'

test('a consumer of a kind whose writes leave no change rows fails the start', () => {
  const effects = { kinds: [terminator.kind], apply: async () => [], reload: async () => [] }
  const source = { schema: 'sessions' } as Source
  const start = () =>
    startConsumers({} as ChangeLog, { sessions: { source, effects } }, pino({ level: 'silent' }))
  expect(start).toThrow(`${terminator.kind} is not followed`)
})
