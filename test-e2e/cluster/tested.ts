import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { logInAsAdmin } from '../admin.js'
import { type KubernetesObject, render } from '../kubernetes/kustomize.js'
import { type Cluster, type ClusterOptions, startCluster } from './cluster.js'

interface DevelopmentOptions extends Pick<ClusterOptions, 'images' | 'hurry'> {
  readonly objects?: readonly KubernetesObject[]
}

/** The objects of the development overlay of this project, or of another checkout of it that has an image of its own. */
export async function developmentObjects(
  checkout?: string,
  image = 'overlay',
): Promise<readonly KubernetesObject[]> {
  const { objects } = await render('overlays/development', checkout)
  for (const { spec } of objects) {
    const { initContainers = [], containers = [] } = spec?.template?.spec ?? {}
    for (const container of [...initContainers, ...containers])
      container.image = container.image.replace(/^overlay:.*/, image)
  }
  return objects
}

/** The development overlay, at free ports of this machine. */
export async function startDevelopment({ hurry = 5, ...options }: DevelopmentOptions): Promise<Cluster> {
  return startOverlay({ ...options, objects: options.objects ?? (await developmentObjects()), hurry })
}

/** An overlay whose balancers are at free ports of this machine. */
export const startOverlay = (options: Omit<ClusterOptions, 'settings'>): Promise<Cluster> =>
  startCluster({
    ...options,
    settings: (addressOf) => ({
      addresses: { OVERLAY_ADDRESS: addressOf('gateway'), OVERLAY_CTRL_ADDRESS: addressOf('control') },
    }),
  })

/** Resolves when the cluster has settled for the first time. Throws what went wrong until then. */
export async function started(cluster: Cluster): Promise<void> {
  await cluster.settled()
  const { problems } = cluster
  const isExpected = (problem: string) => /^pki-.* has ended/.test(problem) // until the job has created the keys
  const unexpected = problems.filter((problem) => !isExpected(problem))
  if (unexpected.length > 0) throw new Error(`pods had problems: ${unexpected.join('\n')}`)
  problems.length = 0
}

/** The authorities of the network, as the job that creates its keys prints them. */
export async function authoritiesOf({ directory }: Cluster): Promise<string> {
  const name = (await readdir(directory)).find((name) => name.endsWith('-keys.log')) ?? ''
  const log = await readFile(join(directory, name), 'utf8')
  const line = log.split('\n').find((line) => line.includes('"caPem"')) ?? ''
  return (JSON.parse(line) as { caPem: string }).caPem
}

/** As the secret of the overlay says. */
export const developmentAdmin = { username: 'admin', password: 'development' }

export const logIn = async (cluster: Cluster) => {
  const server = { addresses: [cluster.addressOf('gateway')], caPem: await authoritiesOf(cluster) }
  return { server, admin: await logInAsAdmin(server, developmentAdmin) }
}
