import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { activateKey, type KeyDeps, type KeyRole, prepareKey } from '@overlay/pki/keys'
import { noBus, openChangeLog } from '@overlay/platform/change-log'
import { openDatabase } from '@overlay/platform/postgres'
import { openLog } from '@overlay/platform/process'
import { ownContext } from '@overlay/rpc'
import { openClient } from './client.js'
import type { Network } from './network.js'
import { until } from './traffic.js'

const DAY_MS = 86_400_000

/** Replaces a key of the network while it runs, as an operator does. Returns when all gateways serve what follows. */
export async function rotate(network: Network, role: Exclude<KeyRole, 'token'>): Promise<void> {
  await using database = openDatabase(network.databaseUrl, 'pki')
  const deps: KeyDeps = {
    changeLog: await openChangeLog(database, noBus, openLog('rotation', { level: 'silent', format: 'json' })),
    keySecret: await keySecretOf(network),
    tokenKeyRules: { periodMs: 30 * DAY_MS, tokenMs: DAY_MS, since: undefined },
    context: ownContext(AbortSignal.timeout(60_000)),
  }
  await (role === 'server'
    ? prepareKey(deps, role)
    : changed(network, bundleOf, () => prepareKey(deps, role)))
  await changed(network, serverChainOf, () => activateKey(deps, role, { force: true }))
}

async function keySecretOf({ home }: Network): Promise<string> {
  const secrets = JSON.parse(await readFile(join(home, 'secrets.json'), 'utf8')) as {
    keySecrets: { pki: string }
  }
  return secrets.keySecrets.pki
}

/** Waits until each gateway shows something else than before the work. */
async function changed(
  { gateways, caPem }: Network,
  shown: (address: string, caPem: string) => Promise<string>,
  work: () => Promise<unknown>,
): Promise<void> {
  const before = await Promise.all(gateways.map((address) => shown(address, caPem)))
  await work()
  await Promise.all(
    gateways.map((address, at) => until(async () => (await shown(address, caPem)) !== before[at])),
  )
}

async function bundleOf(address: string, caPem: string): Promise<string> {
  using client = openClient({ addresses: [address], caPem }, '')
  return await client.request<string>('GET', '/.well-known/est/cacerts')
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
