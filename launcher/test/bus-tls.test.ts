import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLog } from '@overlay/process'
import { openBus } from '@overlay/store/change-log'
import { expect, onTestFinished, test } from 'vitest'
import { checkBus } from '../src/servers/external-servers.js'
import { testCertificates } from '../testing/test-certificates.js'
import { busPrograms, tlsBus } from '../testing/tls-bus.js'

const log = openLog('launcher', { level: 'silent', format: 'json' })

const byAddress = (url: string): string => url.replace('localhost', '127.0.0.1')

/** Fails on a warning, too: it says that the server is away. */
const check = (url: string, tls: string | undefined): Promise<void> =>
  checkBus(url, tls, (line) => {
    throw new Error(line)
  })

/** A copy of a directory without some of its files. */
async function without(directory: string, ...names: string[]): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(copy, { recursive: true }))
  for (const name of ['ca.crt', 'tls.crt', 'tls.key'].filter((name) => !names.includes(name)))
    await cp(join(directory, name), join(copy, name), { dereference: true })
  return copy
}

test.each(busPrograms)(
  '%s with TLS refuses, and is refused, in one line that says what to do',
  async (program) => {
    await using bus = await tlsBus(program)
    const { url, directory } = bus
    await using others = await testCertificates()
    const stranger = await others.issue({ name: 'controller', hosts: ['controller'] })
    await check(url, directory)
    await check(url.replace('tls:', 'nats:'), directory)
    const mixed = await without(stranger, 'ca.crt')
    await cp(join(directory, 'ca.crt'), join(mixed, 'ca.crt'), { dereference: true })
    const expected: readonly (readonly [string, string | undefined, string])[] = [
      [url, stranger, 'its certificate is not trusted: put its authority into ca.crt in the directory'],
      [url, undefined, 'its certificate is not trusted: put its authority into ca.crt in the directory'],
      // the end of the connection may overtake the alert
      [url, await without(directory, 'tls.crt', 'tls.key'), 'client certificate'],
      [
        byAddress(url),
        directory,
        'its certificate is for another host: use the host name of the certificate',
      ],
    ]
    for (const [at, tls, message] of expected) {
      const problem = await check(at, tls).then(
        () => 'connected',
        (err: Error) => err.message,
      )
      expect(problem).toContain(message)
      expect(problem).toMatch(/^(warning: )?cannot reach the bus at [^\n]*\(NATS_URL\)/)
      expect(problem).not.toContain(new URL(at).password)
    }
  },
)

test('a server that is reached by its address needs that address in its certificate, and not localhost', async () => {
  await using byName = await tlsBus('built-in', ['localhost'])
  await using byIp = await tlsBus('built-in', ['127.0.0.1'])
  await expect(check(byAddress(byName.url), byName.directory)).rejects.toThrow('is for another host')
  await check(byAddress(byIp.url), byIp.directory)
  await expect(check(byIp.url, byIp.directory)).rejects.toThrow('is for another host')
})

test('a bus connects again with the present files: those of the first connection may be gone', async () => {
  await using bus = await tlsBus('built-in')
  const directory = await without(bus.directory)
  await using client = await openBus(bus.url, log, { tls: directory })
  await expect.poll(client.connected).toBe(true)
  const states: boolean[] = []
  using _listener = client.onChange((connected) => states.push(connected))
  const renewed = await bus.replaceAuthority()
  await cp(renewed, directory, { recursive: true, dereference: true })
  await bus.restart()
  await expect.poll(() => states).toEqual([false, true])
})
