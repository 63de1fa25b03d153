import { readFileSync } from 'node:fs'
import { logInAsAdmin } from '../admin.js'
import { samples } from '../tests/samples.js'

// Fills a running product with entities of every kind, and prints facts for the run:
// node --conditions=source --import tsx test-e2e/schemathesis/facts.ts <address> <home>

const EACH = 5

const [address = '', home = ''] = process.argv.slice(2)
const read = (name: string): string => readFileSync(`${home}/${name}`, 'utf8').trim()
const admin = await logInAsAdmin(
  { addresses: [address], caPem: read('ca.pem') },
  { username: 'admin', password: read('admin-password') },
)
const session = await admin.request<{
  id: string
  token: string
  identityId: string
  authenticatorId: string
}>('GET', '/current-api-session')

const ids: Record<string, string[]> = {}
for (const [kind, sample] of Object.entries(samples)) {
  const created: string[] = []
  for (let number = 0; number < EACH; number++)
    created.push(await admin.create(kind, await sample(admin, `${kind}-${number}-${session.id}`)))
  ids[kind] = created
}

process.stdout.write(
  JSON.stringify({
    token: session.token,
    protected: [session.id, session.identityId, session.authenticatorId, 'default'],
    ids: { ...ids, routers: ids['transit-routers'] },
  }),
)
admin[Symbol.dispose]()
