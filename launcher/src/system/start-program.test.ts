import { expect, onTestFinished, test } from 'vitest'
import { type Program, startProgram } from './start-program.js'

const deaf = `
  process.on('SIGINT', () => undefined)
  process.on('SIGQUIT', () => process.exit(7))
  setInterval(() => undefined, 1000)
  console.error('ready')`

test.each<[string, Partial<Program>]>([
  ['SIGKILL', { stopMs: 1 }],
  ['code 7', { stopMs: 1, lateSignal: 'SIGQUIT' }],
])('a program that does not stop in its time ends with %s', async (end, options) => {
  const program = { path: process.execPath, args: ['-e', deaf], readyText: 'ready', ...options }
  const { stop, ended } = await startProgram(program)
  onTestFinished(stop)
  await stop()
  expect(await ended).toBe(`node ended with ${end}`)
})
