import { pino } from 'pino'
import { expect, test } from 'vitest'
import { Refused } from './check-hello.js'
import { openRefusals } from './refusals.js'

function start() {
  const lines: { routerId?: string; reason: string; level: number }[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const refusals = openRefusals(log)
  const noteAs = (name: string | undefined, routerId: string, reason: Refused['reason']) =>
    refusals.note(new Refused(reason), { sourceAddress: '192.0.2.1', routerId, name, version: 'v2.0.3' })
  return { ...refusals, noteAs, lines, reasons: () => lines.map(({ reason }) => reason) }
}

test('a refused router is logged once for each reason until it connects', () => {
  const { noteAs, forget, lines, reasons } = start()
  for (const reason of ['not-first', 'not-first', 'disabled', 'not-first'] as const)
    noteAs('east', 'r1', reason)
  expect(reasons()).toEqual(['not-first', 'disabled'])
  expect(lines[0]).toMatchObject({ level: 40, routerId: 'r1', name: 'east', version: 'v2.0.3' })
  noteAs('west', 'r2', 'disabled')
  forget('r1')
  noteAs('east', 'r1', 'disabled')
  noteAs('west', 'r2', 'disabled')
  expect(reasons()).toEqual(['not-first', 'disabled', 'disabled', 'disabled'])
})

test('peers that are no routers of the network are logged at a limited rate', () => {
  const { noteAs, lines } = start()
  for (let i = 0; i < 5000; i++) noteAs(undefined, `unknown ${i}`, 'unknown-router')
  expect(lines).toHaveLength(1000)
})
