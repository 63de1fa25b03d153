import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { expect, test } from 'vitest'
import { WrongSettings } from '../settings.js'
import { openTls } from './peer-tls.js'

test('a directory without a usable certificate is a wrong setting, which names the file', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-tls-'))
  const opening = openTls(directory, 'policy', pino({ level: 'silent' }))
  await expect(opening).rejects.toThrow(WrongSettings)
  await expect(opening).rejects.toThrow(`settings: OVERLAY_TLS: cannot read ${directory}/tls.crt: ENOENT`)
  await rm(directory, { recursive: true })
})
