import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { initPki } from '@overlay/pki/init'
import {
  activateKey,
  type KeyChange,
  type KeyDeps,
  type KeyRole,
  type KeyView,
  listKeys,
  prepareKey,
  retireKey,
} from '@overlay/pki/keys'
import { openLog } from '@overlay/process'
import { ownContext } from '@overlay/rpc'
import { noBus, openChangeLog } from '@overlay/store/change-log'
import { openDatabase } from '@overlay/store/postgres'
import { openClient } from './client.js'
import type { Network } from './network.js'
import { until } from './traffic.js'

const DAY_MS = 86_400_000

/** What an operator does with the keys of a network that runs. What it changes, all gateways serve when it returns. */
export interface Rotation extends AsyncDisposable {
  /** Publishes the next key. */
  prepare(role: KeyRole): Promise<KeyView>
  activate(role: KeyRole): Promise<KeyChange>
  /** Gives the server a certificate over the same key, with another name. */
  renewServer(hostName: string): Promise<void>
  /** Withdraws the retired key of a role. Refuses while something depends on it. */
  retire(role: KeyRole): Promise<KeyChange>
}

export async function openRotation(network: Network): Promise<Rotation> {
  const { databaseUrl, address, ctrlAddress } = network
  const log = openLog('rotation', { level: 'silent', format: 'json' })
  const database = openDatabase(databaseUrl, 'pki')
  const keySecret = await keySecretOf(network)
  const deps = (): KeyDeps => ({
    changeLog,
    keySecret,
    tokenKeyRules: { periodMs: 30 * DAY_MS, tokenMs: DAY_MS, since: undefined },
    context: ownContext(AbortSignal.timeout(60_000)),
  })
  const changeLog = await openChangeLog(database, noBus, log)
  const activate = (role: KeyRole): Promise<KeyChange> => activateKey(deps(), role, { force: true })
  return {
    async prepare(role) {
      const prepare = (): Promise<KeyView> => prepareKey(deps(), role)
      if (role === 'root' || role === 'signing') return changed(network, bundleOf, prepare)
      const key = await prepare() // the next key of tokens may be there already
      if (role === 'token') await published(network, key)
      return key
    },
    activate: (role) =>
      role === 'token' ? activate(role) : changed(network, serverChainOf, () => activate(role)),
    async renewServer(hostName) {
      const options = { databaseUrl, keySecret, address, ctrlAddress, hostNames: [hostName], log }
      await changed(network, serverChainOf, () => initPki(options))
    },
    async retire(role) {
      const keys = await listKeys(deps())
      const retired = keys.find((key) => key.role === role && key.state === 'retired')
      return retireKey(deps(), retired?.id ?? '')
    },
    async [Symbol.asyncDispose]() {
      await changeLog[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Replaces a key of the network while it runs. Returns when all gateways serve what follows. */
export async function rotate(network: Network, role: Exclude<KeyRole, 'token'>): Promise<void> {
  await using rotation = await openRotation(network)
  await rotation.prepare(role)
  await rotation.activate(role)
}

async function keySecretOf({ home }: Network): Promise<string> {
  const secrets = JSON.parse(await readFile(join(home, 'secrets.json'), 'utf8')) as {
    keySecrets: { pki: string }
  }
  return secrets.keySecrets.pki
}

/** Waits until each gateway shows something else than before the work. */
async function changed<T>(
  { gateways, caPem }: Network,
  shown: (address: string, caPem: string) => Promise<string>,
  work: () => Promise<T>,
): Promise<T> {
  const before = await Promise.all(gateways.map((address) => shown(address, caPem)))
  const result = await work()
  await Promise.all(
    gateways.map((address, at) => until(async () => (await shown(address, caPem)) !== before[at])),
  )
  return result
}

async function bundleOf(address: string, caPem: string): Promise<string> {
  using client = openClient({ addresses: [address], caPem }, '')
  return await client.request<string>('GET', '/.well-known/est/cacerts')
}

async function published({ gateways, caPem }: Network, { id }: KeyView): Promise<void> {
  for (const address of gateways) {
    using client = openClient({ addresses: [address], caPem }, '/oidc')
    await until(async () => JSON.stringify(await client.call('GET', '/keys')).includes(id))
  }
}

/** The fingerprints of what a gateway presents. */
const serverChainOf = (address: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(`https://${address}`)
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      const { fingerprint256, issuerCertificate } = socket.getPeerCertificate(true)
      socket.destroy()
      resolve(`${fingerprint256} ${issuerCertificate?.fingerprint256}`)
    })
    socket.on('error', reject)
  })
