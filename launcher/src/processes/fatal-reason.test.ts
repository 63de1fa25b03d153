import { openLog } from '@overlay/process'
import { expect, test } from 'vitest'
import { fatalReasonIn } from './fatal-reason.js'

/** What a process logs that fails. */
function logOf(format: 'json' | 'text', fail: (log: ReturnType<typeof openLog>) => void): string {
  const lines: string[] = []
  const log = openLog('pki', {
    level: 'info',
    format,
    destination: { write: (line) => void lines.push(line) },
  })
  log.info('starting')
  fail(log)
  return lines.join('')
}

const lost = new Error('the service is unavailable', {
  cause: new Error('timeout exceeded when trying to connect'),
})

test('the reason is the message of the last error at fatal, and of its causes', () => {
  const text = logOf('json', (log) => {
    log.fatal({ err: new Error('another') }, 'program failed')
    log.fatal({ err: lost }, 'program failed')
    log.error({ err: new Error('later') }, 'not closed')
  })
  expect(fatalReasonIn(text)).toBe('pki: the service is unavailable: timeout exceeded when trying to connect')
})

test('wrong settings are the reason', () => {
  const text = logOf('json', (log) => log.fatal({ reason: 'settings: X is not set' }, 'wrong settings'))
  expect(fatalReasonIn(text)).toBe('pki: settings: X is not set')
})

test('a log for people has the reason, too', () => {
  const text = logOf('text', (log) => log.fatal({ err: lost }, 'program failed'))
  expect(fatalReasonIn(text)).toContain('pki: program failed: the service is unavailable')
})

test.each(['', 'Error: Cannot find module\n', '{"level":"fatal","serv'])(
  'a log without such a line has no reason: %j',
  (text) => expect(fatalReasonIn(text)).toBeUndefined(),
)
