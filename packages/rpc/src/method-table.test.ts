import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServiceDefinition } from '@grpc/grpc-js'
import { describe, expect, test } from 'vitest'
import { HealthService } from './gen/health/v1/health.js'
import { StatusServiceService } from './gen/overlay/status/v1/status.js'
import * as definitions from './index.js'
import { callersOf, methodTable } from './method-table.js'
import { reflectionPaths } from './reflection.js'

const standard = [
  ...[...Object.values(HealthService), StatusServiceService.describe].map(({ path }) => path),
  ...reflectionPaths,
]
const root = join(import.meta.dirname, '../../..')
const services = ['identity', 'pki', 'policy', 'sessions'] as const

/** The paths of the methods that a service hosts, in the text of its `run.ts`. */
async function hostedBy(service: string): Promise<string[]> {
  const main = await readFile(join(root, 'services', service, 'src/run.ts'), 'utf8')
  const names = [...main.matchAll(/host\((\w+),/g)].map(([, name = '']) => name)
  const byName: Readonly<Record<string, unknown>> = definitions
  return names.flatMap((name) => Object.values(byName[name] as ServiceDefinition).map(({ path }) => path))
}

test('only services have rows', () => {
  expect([...methodTable.keys()].sort()).toEqual(services)
})

describe.each(services)('%s', (service) => {
  const rows = [...(methodTable.get(service) ?? [])]
  const own = rows.filter(([path]) => !standard.includes(path))

  test('has one row for each method that it hosts, and no other', async () => {
    const hosted = [...(await hostedBy(service)), ...standard]
    expect(hosted.length).toBeGreaterThan(20)
    expect(rows.map(([path]) => path).sort()).toEqual(hosted.sort())
  })
  test('is called only by processes that connect to it', async () => {
    const named = new Set(own.flatMap(([, { callers }]) => callers))
    named.delete('gateway') // connects to all
    const connected = await Promise.all(
      services.map(async (other) => {
        const main = await readFile(join(root, 'services', other, 'src/run.ts'), 'utf8')
        return main.includes(`connect('${service}'`) ? [other] : []
      }),
    )
    expect([...named].sort()).toEqual(connected.flat())
  })
  test('neither calls itself nor is called by an operator', () => {
    for (const [path, { callers }] of own) {
      expect(callers, path).not.toContain(service)
      expect(callers, path).not.toContain('operator')
    }
  })
})

test('a method without a row has no callers', () => {
  expect(callersOf('policy', '/overlay.pki.v1.PkiService/Enroll')).toBe(undefined)
  expect(callersOf('gateway', '/overlay.pki.v1.PkiService/Enroll')).toBe(undefined)
})
