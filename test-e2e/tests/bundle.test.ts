import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'

const run = promisify(execFile)
const script = join(import.meta.dirname, '../../scripts/bundle.sh')
const directory = await mkdtemp(join(tmpdir(), 'overlay-test-bundle-'))
afterAll(() => rm(directory, { recursive: true }))

async function bundle(name: string, text: string): Promise<string> {
  const [source, into] = [join(directory, `${name}.ts`), join(directory, name)]
  await writeFile(source, text)
  await run('sh', [script, into, source])
  return join(into, `${name}.js`)
}

const values = `/* \u3002 */ console.log('\u3002'.length, \`\u2026\${1}\`.length, /[.\\u3002]/u.test('\u3002'))`

test('a program is what its source says, also with characters beyond ASCII in strings', async () => {
  const { stdout } = await run(process.execPath, [await bundle('strings', values)])
  expect(stdout).toBe('1 2 true\n')
})

test.each([
  ['regular-expression', `console.log(/[.\u3002]/u.test('.'))`],
  ['tagged-template', `console.log(String.raw\`a\u3002b\`)`],
])('a character beyond ASCII that the compiler does not escape fails the build: %s', async (name, text) => {
  await expect(bundle(name, text)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      new RegExp(`^characters beyond ASCII .*\\n\\./${name}\\.js:3:.*\u3002\\n$`),
    ),
  })
  await expect(run(process.execPath, [join(directory, name, `${name}.js`)])).rejects.toThrow(
    'Cannot find module',
  )
})
