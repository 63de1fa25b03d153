import { testBus, testPostgres, withClient } from '@overlay/launcher/testing'
import type { Env, WorkloadSpec } from './manifests.js'

/** A server of the tests in place of a container. */
export interface StandIn extends AsyncDisposable {
  readonly labels: Readonly<Record<string, string>>
  /** On this machine. */
  readonly port: number
}

const imageOf = ({ template }: WorkloadSpec): string =>
  /^(?:.*\/)?(\w+)/.exec(template.spec.containers[0]?.image ?? '')?.[1] ?? ''

export const isStandIn = (spec: WorkloadSpec): boolean => ['postgres', 'nats'].includes(imageOf(spec))

/** Starts the server with the user and the password of the container. */
export async function startStandIn(
  spec: WorkloadSpec,
  secretOf: (ref: { name: string; key: string }) => string,
): Promise<StandIn> {
  const labels = spec.template.metadata?.labels ?? {}
  const env = spec.template.spec.containers[0]?.env ?? []
  const settingOf = (name: string): string => {
    const { value, valueFrom } = env.find((one: Env) => one.name === name) ?? {}
    return valueFrom?.secretKeyRef ? secretOf(valueFrom.secretKeyRef) : (value ?? '')
  }
  if (imageOf(spec) === 'nats') {
    const bus = await testBus(settingOf('PASSWORD'))
    return { labels, port: Number(new URL(bus.url).port), [Symbol.asyncDispose]: () => bus.stop() }
  }
  const [user, database, password] = ['POSTGRES_USER', 'POSTGRES_DB', 'POSTGRES_PASSWORD'].map(settingOf)
  const postgres = await testPostgres({ password: password ?? '' })
  await withClient(postgres.url, async (client) => {
    await client.query(`create role ${user} superuser login password '${password}'`)
    await client.query(`create database ${database} owner ${user}`)
  })
  return {
    labels,
    port: Number(new URL(postgres.url).port),
    [Symbol.asyncDispose]: () => postgres[Symbol.asyncDispose](),
  }
}
