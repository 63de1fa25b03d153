import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { expect, test } from 'vitest'
import { openLog } from '../log.js'
import { WrongSettings } from '../settings.js'
import { noteUnavailable, openTls } from './peer-tls.js'

test('a directory without a usable certificate is a wrong setting, which names the file', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-tls-'))
  const opening = openTls(directory, 'policy', pino({ level: 'silent' }))
  await expect(opening).rejects.toThrow(WrongSettings)
  await expect(opening).rejects.toThrow(`settings: OVERLAY_TLS: cannot read ${directory}/tls.crt: ENOENT`)
  await rm(directory, { recursive: true })
})

test('causes of answers with 503 are logged without secrets, ten of a method in a minute', () => {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const note = noteUnavailable(openLog('policy', { level: 'info', format: 'json', destination }))
  const call = { code: 'UNAVAILABLE', requestId: 'r1', traceId: undefined }
  const err = new Error('no answer of postgres://policy:geheim@db/overlay')
  for (let count = 0; count < 20; count++) note({ ...call, method: '/a', err })
  note({ ...call, method: '/b', err })
  expect(lines).toHaveLength(11)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'warn', method: '/a', requestId: 'r1' })
  expect(lines.join()).toContain('no answer of')
  expect(lines.join()).not.toContain('geheim')
})
