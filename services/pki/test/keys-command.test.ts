import { testDatabase } from '@overlay/launcher/testing'
import { openDatabase } from '@overlay/store/postgres'
import pino from 'pino'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { initPki } from '../src/init.js'
import { readKeysArguments, runKeysCommand } from '../src/keys-command/run-keys-command.js'

const log = pino({ level: 'silent' })
const keySecret = 'a key secret of at least 32 characters'
const tokenKeyRules = { periodMs: 30 * 86_400_000, tokenMs: 86_400_000, since: undefined }

test('a key is prepared, activated and withdrawn, each time with what happens next and who did it', async () => {
  await using database = await testDatabase('pki')
  const databaseUrl = database.urlOf('pki')
  await initPki({
    databaseUrl,
    keySecret,
    address: 'localhost:1280',
    ctrlAddress: 'localhost:6262',
    log,
  })
  const run = async (...args: readonly string[]): Promise<string> => {
    const lines: string[] = []
    const request = readKeysArguments(args)
    const addresses = ['localhost:1280', 'localhost:6262']
    const print = (line: string): void => void lines.push(line)
    await runKeysCommand({
      request,
      command: 'node keys.js',
      databaseUrl,
      keySecret,
      tokenKeyRules,
      addresses,
      operator: 'eve',
      print,
      log,
    })
    expect(lines.join('\n')).not.toContain('PRIVATE KEY')
    return lines.join('\n')
  }
  const keys = async (): Promise<readonly { id: string; role: string; state: string }[]> =>
    JSON.parse(await run('--json'))

  expect(await run()).toMatch(/^role +state +id +key[\s\S]*\nsigning +active +\S{8} +P-256 +O=overlay/)
  expect(await run('prepare', 'signing')).toMatch(
    /^prepared the next signing key \S{8} [\s\S]*\nit is published, and not used yet; next, after .*Z: node keys\.js activate signing$/,
  )
  expect(await run()).toMatch(
    /^the next signing key \S{8} .* is not in use yet: node keys\.js activate signing$/m,
  )
  await expect(run('activate', 'signing')).rejects.toThrow(
    /not known everywhere yet.*\(--force does it nevertheless\)/,
  )
  expect(await run('activate', 'signing', '--force')).toMatch(
    /^the signing key \S{8} .* is active now\nretired the signing key \S{8} .* stays valid, until .* at the latest/,
  )
  const retired = (await keys()).find(({ role, state }) => role === 'signing' && state === 'retired')
  await expect(run('retire', String(retired?.id))).rejects.toThrow(/--force does it nevertheless/)
  expect(await run('retire', String(retired?.id).slice(0, 8), '--force')).toMatch(
    /^removed the retired signing key \S{8} .*: what it has signed is still accepted .*; if it has leaked, replace the root$/,
  )
  await expect(run('retire', 'none')).rejects.toThrow('there is no key none')

  await using db = openDatabase(databaseUrl, 'pki')
  const { rows } = await db.query<{ readonly text: string }>(
    sql`select row_to_json(audit)::text as text from audit order by at desc limit 1`,
  )
  expect(rows[0]?.text).toContain('eve')
})
