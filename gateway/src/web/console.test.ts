import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { consolePages } from './console.js'

const SCRIPT = 'window.isSPA = true'
const INDEX = `<!doctype html><script>${SCRIPT}</script><link onload="this.media='all'"><script src="main.js"></script>`
const MAIN = `export const main = 1 // ${'long '.repeat(1000)}`

let scratch: string
let folder: string
let gateway: TestGateway
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'overlay-console-'))
  folder = join(scratch, 'console')
  await mkdir(join(folder, 'assets/icons'), { recursive: true })
  await mkdir(join(folder, '.git'))
  await Promise.all([
    writeFile(join(scratch, 'outside.js'), 'secret'),
    writeFile(join(folder, 'index.html'), INDEX),
    writeFile(join(folder, 'main.js'), MAIN),
    writeFile(join(folder, 'chunk-ABCD2345.js'), 'chunk'),
    writeFile(join(folder, 'with space.css'), 'a {}'),
    writeFile(join(folder, 'assets/icons/favicon.ico'), 'icon'),
    writeFile(join(folder, '.git/config.json'), 'secret'),
    symlink(join(scratch, 'outside.js'), join(folder, 'linked.js')),
    symlink(scratch, join(folder, 'up')),
  ])
  gateway = await startGateway({ console: folder })
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await rm(scratch, { recursive: true })
})

const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

test('the path without a slash leads to the console, with its query', async () => {
  const { status, headers } = await gateway.request('/zac?state=1')
  expect([status, headers.location]).toEqual([302, '/zac/?state=1'])
})

test.each([
  '/zac/',
  '/zac/index.html',
  '/zac/dashboard',
  '/zac/login?next=1',
  '/zac/identities/.Inzu-I1S.js',
  '/zac/assets',
])('%s opens the console in a browser', async (path) => {
  const { status, headers, text } = await gateway.request(path, { headers: browser })
  expect([status, headers['content-type'], text]).toEqual([200, 'text/html; charset=utf-8', INDEX])
  expect(headers).toMatchObject({
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  })
})

test.each([
  ['/zac/main.js', 'text/javascript; charset=utf-8', MAIN, 'no-cache'],
  [
    '/zac/chunk-ABCD2345.js',
    'text/javascript; charset=utf-8',
    'chunk',
    'public, max-age=31536000, immutable',
  ],
  ['/zac/with%20space.css', 'text/css; charset=utf-8', 'a {}', 'no-cache'],
  ['/zac/assets/icons/favicon.ico', 'image/x-icon', 'icon', 'no-cache'],
  ['/assets/icons/favicon.ico', 'image/x-icon', 'icon', 'no-cache'],
])('%s is a file with its type, cached if its name has its digest', async (path, type, content, caching) => {
  const { status, headers, text } = await gateway.request(path)
  expect([status, headers['content-type'], text, headers['cache-control']]).toEqual([
    200,
    type,
    content,
    caching,
  ])
})

test('the scripts in the page are admitted by their digests, and no others', async () => {
  const policy = String((await gateway.request('/zac/')).headers['content-security-policy'])
  const [scripts = ''] = policy.split('; ').filter((directive) => directive.startsWith('script-src '))
  for (const script of [SCRIPT, "this.media='all'"])
    expect(scripts).toContain(`'sha256-${createHash('sha256').update(script).digest('base64')}'`)
  expect(scripts).not.toContain('unsafe-inline')
  expect(policy).toContain("frame-ancestors 'none'")
})

test.each([
  '/zac/../outside.js',
  '/zac/%2e%2e/outside.js',
  '/zac/..%2foutside.js',
  '/zac/..%5coutside.js',
  '/zac/assets/../../outside.js',
  '/assets/%2e%2e/%2e%2e/outside.js',
  '/zac/linked.js',
  '/zac/up/outside.js',
  '/zac/.git/config.json',
  '/zac/main.js%00',
  '/zac/main%00.js',
  '/zac/%E0%A4%A.js',
  `/zac/${'a/'.repeat(4000)}x.js`,
  `/zac/${'a'.repeat(5000)}.js`,
  '/zac/main.js/x.js',
  '/zac/gone.js',
  '/assets/gone.png',
  '/assets/',
])('%s shows no file', async (path) => {
  const { status, json } = await gateway.request(path)
  expect([status, json.error?.code]).toEqual([404, 'NOT_FOUND'])
})

test('a file that the client has is not sent again', async () => {
  const { headers } = await gateway.request('/zac/main.js')
  const ask = (etag: string) => gateway.request('/zac/main.js', { headers: { 'if-none-match': etag } })
  const etag = String(headers.etag)
  for (const known of [etag, `"other", ${etag}`, etag.replace('W/', ''), '*']) {
    const { status, body } = await ask(known)
    expect([status, body.length]).toEqual([304, 0])
  }
  expect((await ask('"other"')).status).toBe(200)
})

test('a file is compressed for clients that accept it', async () => {
  const { headers, body } = await gateway.request('/zac/main.js', { headers: { 'accept-encoding': 'gzip' } })
  expect(headers).toMatchObject({
    'content-encoding': 'gzip',
    vary: expect.stringContaining('accept-encoding'),
  })
  expect(gunzipSync(body).toString()).toBe(MAIN)
})

test('HEAD has the headers of GET and no content', async () => {
  const { status, headers, body } = await gateway.request('/zac/main.js', { method: 'HEAD' })
  expect([status, headers['content-type'], body.length]).toEqual([200, 'text/javascript; charset=utf-8', 0])
})

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s is not allowed', async (method) => {
  const { status, headers, json } = await gateway.request('/zac/main.js', { method })
  expect([status, headers.allow, json.error?.code]).toEqual([405, 'GET, HEAD', 'METHOD_NOT_ALLOWED'])
})

test('a file that is replaced is served at once, and its tag follows from its content', async () => {
  const path = join(folder, 'replaced.js')
  const replace = async (content: string, time: number) => {
    await writeFile(`${path}.new`, content)
    await utimes(`${path}.new`, time, time)
    await rename(`${path}.new`, path)
    const { text, headers } = await gateway.request('/zac/replaced.js')
    return [text, headers.etag]
  }
  const [, first] = await replace('a', 1000)
  const [second, secondTag] = await replace('b', 1000)
  expect(second).toBe('b')
  expect(secondTag).not.toBe(first)
  expect(await replace('a', 2000)).toEqual(['a', first])
})

test('a directory without a console stops the start, and the message names the setting', async () => {
  await expect(consolePages(join(scratch, 'none'))).rejects.toThrow(/OVERLAY_CONSOLE.*none/)
  await expect(consolePages(join(folder, 'assets'))).rejects.toThrow(/OVERLAY_CONSOLE.*index\.html/)
})

test('the paths of the APIs are those without a console', async () => {
  await using without = await startGateway()
  for (const path of ['/', '/version', '/edge/client/v1', '/.well-known/other', '/zacx', '/assetsx']) {
    const [one, other] = [await gateway.request(path), await without.request(path)]
    expect([one.status, one.json.data]).toEqual([other.status, other.json.data])
  }
  const { status, json } = await without.request('/zac/', { headers: browser })
  expect([status, json.error?.cause?.message]).toEqual([404, 'path /edge/client/v1/zac was not found'])
})
