import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { logInAsAdmin } from '../admin.js'
import { type KubernetesObject, render } from '../kubernetes/kustomize.js'
import { type Cluster, type ClusterOptions, startCluster } from './cluster.js'

interface DevelopmentOptions extends Pick<ClusterOptions, 'images'> {
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
export async function startDevelopment({ images, objects }: DevelopmentOptions): Promise<Cluster> {
  return startCluster({
    images,
    objects: objects ?? (await developmentObjects()),
    hurry: 5,
    settings: (addressOf) => ({
      addresses: { OVERLAY_ADDRESS: addressOf('gateway'), OVERLAY_CTRL_ADDRESS: addressOf('control') },
    }),
  })
}

/** The authorities of the network, as the job that creates its keys prints them. */
export async function authoritiesOf({ directory }: Cluster): Promise<string> {
  const name = (await readdir(directory)).find((name) => name.endsWith('-keys.log')) ?? ''
  const log = await readFile(join(directory, name), 'utf8')
  const line = log.split('\n').find((line) => line.includes('"caPem"')) ?? ''
  return (JSON.parse(line) as { caPem: string }).caPem
}

export const logIn = async (cluster: Cluster) => {
  const server = { addresses: [cluster.addressOf('gateway')], caPem: await authoritiesOf(cluster) }
  return { server, admin: await logInAsAdmin(server, { username: 'admin', password: 'development' }) }
}
