import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { services } from '@overlay/store/postgres/prepare-and-migrate'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { KubernetesObject } from '../kubernetes/kustomize.js'
import { isRelease } from '../release.js'
import { type Clients, startClients } from './clients.js'
import type { Cluster } from './cluster.js'
import { buildCommit, commitBefore, formerRelease } from './former-release.js'
import { buildImage } from './image.js'
import { canRunPods } from './pod-network.js'
import { developmentObjects, logIn, startDevelopment, started } from './tested.js'

const components = [...services, 'gateway']
const NEXT = '29990101000000000_next'

// namespaces and interfaces need root
describe.skipIf(!canRunPods() && process.env.CI !== 'true')('beside former builds', () => {
  let work: string
  let former: readonly KubernetesObject[]
  let before: readonly KubernetesObject[]
  let current: readonly KubernetesObject[]
  let cluster: Cluster
  let clients: Clients
  let release: string
  let previous: string
  let revision: () => Promise<string>
  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'overlay-test-'))
    release = await formerRelease()
    previous = await commitBefore()
    const image = join(work, 'image')
    const [formerBuild, beforeBuild] = await Promise.all([
      buildCommit(release),
      isRelease ? buildCommit(previous) : undefined,
      buildImage(image),
    ])
    const images = {
      overlay: image,
      former: formerBuild.image,
      ...(beforeBuild && { before: beforeBuild.image }),
    }
    // so that the former release goes back to a newer schema, also while there are no migrations since
    await writeFile(join(image, `packages/store/migrations/${NEXT}.sql`), '-- Up Migration\nselect 1;\n')
    former = await developmentObjects(formerBuild.checkout, 'former')
    if (beforeBuild) before = await developmentObjects(beforeBuild.checkout, 'before')
    current = await developmentObjects()
    cluster = await startDevelopment({ images, objects: former })
    cluster.workload('sessions').scale(2) // its replicas are replaced one by one, without one more
    await started(cluster)
    const { server, admin } = await logIn(cluster)
    revision = async () => (await admin.request<{ revision: string }>('GET', '/version')).revision
    clients = await startClients(server, admin, cluster.addressOf('control'))
  })
  afterAll(async () => {
    try {
      await clients?.[Symbol.asyncDispose]()
    } finally {
      await cluster?.[Symbol.asyncDispose]()
      await rm(work, { recursive: true, force: true })
    }
  })

  /** The names of running replicas whose logs have this message. */
  async function logged(message: string): Promise<readonly string[]> {
    const pods = services.flatMap((component) => cluster.workload(component).pods())
    const logs = await Promise.all(
      pods.map(async ({ name }) => ({
        name,
        log: await readFile(join(cluster.directory, `${name}-overlay.log`), 'utf8'),
      })),
    )
    return logs.filter(({ log }) => log.includes(`"${message}"`)).map(({ name }) => name)
  }

  /** Replaces the replicas of a component. Clients work while those of both releases are in service. */
  async function replace(component: string, objects: readonly KubernetesObject[]): Promise<void> {
    const workload = cluster.workload(component)
    const before = workload.pods()
    await cluster.apply(
      objects.filter(
        ({ kind, metadata }) =>
          kind === 'ConfigMap' || (kind !== 'NetworkPolicy' && metadata.name === component),
      ),
    )
    await cluster.until(() => {
      const ready = cluster.endpoints(component)
      const isMixed = ready.some((pod) => before.includes(pod)) && ready.some((pod) => !before.includes(pod))
      if (isMixed) workload.pause()
      return isMixed
    })
    await clients.round()
    workload.resume()
    await cluster.settled()
    expect(cluster.problems).toEqual([])
  }

  test('no request fails while the job migrates and one component after the other is upgraded', async () => {
    expect(await revision()).toBe(release.slice(0, 12))
    await cluster.apply(current.filter(({ kind }) => ['ConfigMap', 'Job', 'NetworkPolicy'].includes(kind)))
    await cluster.settled()
    await clients.round()
    for (const component of components) await replace(component, current)
    await clients.round()
    expect(await revision()).not.toBe(release.slice(0, 12))
  })

  test('no request fails while one component after the other goes back', async () => {
    const newer = 'schema belongs to the next release'
    expect(await logged(newer)).toEqual([])
    await cluster.apply(former.filter(({ kind }) => kind === 'NetworkPolicy'))
    for (const component of components) await replace(component, former)
    await clients.round()
    const replicas = services.flatMap((component) => cluster.workload(component).pods())
    expect(await logged(newer)).toEqual(replicas.map(({ name }) => name))
    expect(await revision()).toBe(release.slice(0, 12))
  })

  if (!isRelease) return
  test('no request fails while everything is rolled to the commit before, and from it to this one', async () => {
    for (const objects of [before, current]) {
      const isApplied = ({ kind, metadata }: KubernetesObject): boolean =>
        ['ConfigMap', 'NetworkPolicy'].includes(kind) ||
        (kind !== 'Job' && components.includes(metadata.name))
      await cluster.apply(objects.filter(isApplied))
      await cluster.settled()
      await clients.round()
      expect((await revision()) === previous.slice(0, 12)).toBe(objects === before)
      expect(cluster.problems).toEqual([])
    }
  })
})
