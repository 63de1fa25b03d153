import { logInAsAdmin } from '../admin.js'
import { missing, type Network, networkAdmin, refusedCalls } from '../network.js'
import type { Cluster } from './cluster.js'
import { authoritiesOf, developmentObjects, startDevelopment, started } from './tested.js'

/**
 * The development overlay as a network for tests that know it by its addresses alone. It has the manifests' own number of
 * replicas behind one address for each port, and the admin of the other networks.
 */
export async function startNetworkOfPods(image: string): Promise<Network> {
  const objects = await developmentObjects()
  const secret = objects.find(({ kind, metadata }) => kind === 'Secret' && metadata.name === 'admin')
  if (secret) secret.data.password = Buffer.from(networkAdmin.password).toString('base64')
  const cluster = await startDevelopment({
    images: { overlay: image },
    objects,
    hurry: 20,
  })
  try {
    await started(cluster)
    return networkOf(cluster, await authoritiesOf(cluster))
  } catch (err) {
    await cluster[Symbol.asyncDispose]()
    throw err
  }
}

function networkOf(cluster: Cluster, caPem: string): Network {
  const [address, ctrlAddress] = [cluster.addressOf('gateway'), cluster.addressOf('control')]
  return {
    address,
    gateways: [address, address],
    ctrlAddress,
    controllers: [ctrlAddress],
    caPem,
    home: cluster.directory,
    get bus() {
      return missing('a bus that the test controls')
    },
    get databaseUrl() {
      return missing('a database that the test reads')
    },
    get processes() {
      return missing('processes that the test knows')
    },
    stop: () => missing('a stop that keeps its files'),
    admin: () => logInAsAdmin({ addresses: [address], caPem }, networkAdmin),
    async [Symbol.asyncDispose]() {
      const { problems, directory } = cluster
      try {
        const found = [...problems, ...(await refusedCalls(directory))]
        if (found.length > 0) throw new Error(`pods had problems: ${found.join('\n')}`)
      } finally {
        await cluster[Symbol.asyncDispose]()
      }
    },
  }
}
