import { parseArgs } from 'node:util'
import { readLauncherSettings } from '../settings/settings.js'
import { auditText } from './audit-text.js'
import { countOf, timeOf } from './parse-options.js'
import { readAudit } from './read-audit.js'
import { runCommand } from './run-command.js'
import { withDatabase } from './with-database.js'

const usage = `npm run audit -- [options]

Prints who changed what, newest last: time, author, address, operation, entity, request.

  --kind KIND       entities of this kind: identities, services, service-policies, …
  --name NAME       entities with this name, before or after the change
  --id ID           the entity with this id
  --author NAME|ID  changes by this identity (name, user name or id), router or user of this machine
  --request ID      changes of this request, as in the log and in the answer to the client
  --since TIME      changes since then: 30m, 2h, 7d, or 2026-01-12T09:30:00Z
  --limit COUNT     at most so many changes, the newest ones (100)
  --json            JSON lines in the form of /audit/v1, with the entity before and after the change`

await runCommand('audit not read', run)

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: {
      kind: { type: 'string' },
      name: { type: 'string' },
      id: { type: 'string' },
      author: { type: 'string' },
      request: { type: 'string' },
      since: { type: 'string' },
      limit: { type: 'string', default: '100' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const limit = countOf('--limit', values.limit)
  const since = values.since === undefined ? undefined : timeOf(values.since)
  const settings = readLauncherSettings(process.env)
  const note = (line: string): void => console.error(line)
  const changes = await withDatabase(settings, note, (url) => readAudit(url, { ...values, since, limit }))
  for (const change of changes) console.log(values.json ? JSON.stringify(change) : auditText(change))
  if (changes.length === 0) note('no changes found')
  if (changes.length === limit) note(`only the newest ${limit} changes: --limit shows more`)
}
