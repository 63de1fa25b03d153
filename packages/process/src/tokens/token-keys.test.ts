import { Fault, ownContext } from '@overlay/rpc'
import { beforeEach, expect, test } from 'vitest'
import { newTokenKey, publishedKeys } from '../../testing/tokens.js'
import { openTokenKeys, type TokenKeys, type TokenKeysOptions } from './token-keys.js'

const [first, second, server] = ['k1', 'k2', 'server'].map(newTokenKey)
if (!first || !second || !server) throw new Error('three keys expected')

let now: number
let asked: number
let removed: string[]
let answer: () => Promise<ReturnType<typeof publishedKeys>>
let keys: TokenKeys

beforeEach(() => {
  now = 0
  asked = 0
  removed = []
  answer = async () => publishedKeys([first], [server])
  keys = open()
})

const open = (more: Partial<TokenKeysOptions> = {}): TokenKeys =>
  openTokenKeys({
    pki: {
      getTokenKeys: () => {
        asked++
        return answer()
      },
    },
    context: () => ownContext(new AbortController().signal),
    log: { warn: () => undefined },
    onRemoved: (id) => removed.push(id),
    now: () => now,
    ...more,
  })

const idsIn = (document: Buffer): string[] =>
  (JSON.parse(document.toString()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid)

test('keys are read once, and the key of the gateways is published, but verifies no tokens', async () => {
  expect((await keys.find('k1'))?.equals(first.publicKey)).toBe(true)
  expect(keys.find('k1')).not.toBeInstanceOf(Promise)
  expect(await keys.find('server')).toBeUndefined()
  expect(idsIn(await keys.document())).toEqual(['k1', 'server'])
  expect(asked).toBe(1)
})

test('unknown key ids cause one read a second at most', async () => {
  await keys.find('k1')
  for (let i = 0; i < 100; i++) expect(await keys.find(`unknown ${i}`)).toBeUndefined()
  expect(asked).toBe(1)
  now += 1000
  answer = async () => publishedKeys([first, second])
  const found = await Promise.all(Array.from({ length: 100 }, () => keys.find('k2')))
  expect(found.every((key) => key?.equals(second.publicKey))).toBe(true)
  expect(asked).toBe(2)
})

test('a change is read at once', async () => {
  await keys.find('k1')
  answer = async () => publishedKeys([second])
  keys.reload()
  await expect.poll(() => removed).toEqual(['k1'])
  expect(await keys.find('k1')).toBeUndefined()
  expect((await keys.find('k2'))?.equals(second.publicKey)).toBe(true)
})

test('while pki does not answer, the last keys are used, and it is asked again', async () => {
  await keys.find('k1')
  answer = () => Promise.reject(new Fault('UNAVAILABLE'))
  keys.reload()
  now += 1000
  expect((await keys.find('k1'))?.equals(first.publicKey)).toBe(true)
  expect(idsIn(await keys.document())).toEqual(['k1', 'server'])
  answer = async () => publishedKeys([second])
  now += 1000
  expect(await keys.find('k1')).toBeUndefined()
  expect(removed).toEqual(['k1'])
})

test('before the first answer of pki nothing is known, which is no refusal', async () => {
  answer = () => Promise.reject(new Fault('UNAVAILABLE'))
  await expect(keys.find('k1')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  answer = async () => publishedKeys([first])
  expect((await keys.find('k1'))?.equals(first.publicKey)).toBe(true)
})

test('keys of a maximum age are read again, and remain in use while pki does not answer', async () => {
  keys = open({ maxAgeMs: 60_000 })
  await keys.find('k1')
  now += 59_999
  await keys.find('k1')
  expect(asked).toBe(1)
  now += 1
  answer = () => Promise.reject(new Fault('UNAVAILABLE'))
  expect((await keys.find('k1'))?.equals(first.publicKey)).toBe(true)
  now += 1000
  answer = async () => publishedKeys([second])
  expect(await keys.find('k1')).toBeUndefined()
  expect(asked).toBe(3)
})
