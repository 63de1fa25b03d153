import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { accepts, checkAccept } from './negotiate.js'

const accepting = (accept: string) => ({ headers: { accept } }) as unknown as IncomingMessage

test('of an Accept header the first 64 ranges have an effect, and the first parameters of each', () => {
  const others = (count: number) => 'text/csv,'.repeat(count)
  for (const [count, isAccepted] of [
    [63, true],
    [64, false],
  ] as const) {
    const json = accepting(`${others(count)}application/json`)
    if (isAccepted) expect(() => checkAccept(json)).not.toThrow()
    else expect(() => checkAccept(json)).toThrow()
    expect(accepts(accepting(`${others(count)}text/html`), 'text/html')).toBe(isAccepted)
  }
  expect(() => checkAccept(accepting(`application/json${';a=b'.repeat(10)};q=0`))).toThrow()
  expect(() => checkAccept(accepting(`application/json${';a=b'.repeat(100)};q=0`))).not.toThrow()
})
