import { expect, test } from 'vitest'
import { gatewaySettings } from '../../gateway/src/settings.js'
import { launcherSettings } from '../../launcher/src/settings.js'
import { settingsTable } from '../../packages/platform/src/process/settings.js'
import { identitySettings } from '../../services/identity/src/settings.js'
import { pkiSettings } from '../../services/pki/src/settings.js'
import { policySettings } from '../../services/policy/src/settings.js'
import { sessionsSettings } from '../../services/sessions/src/settings.js'

// `npx vitest run test-e2e/tests/settings -u` writes it anew
test('the table of settings in the documentation is that of the declarations', async () => {
  const table = settingsTable({
    launcher: launcherSettings,
    gateway: gatewaySettings,
    identity: identitySettings,
    pki: pkiSettings,
    policy: policySettings,
    sessions: sessionsSettings,
  })
  await expect(`# Settings

All come from the environment and are read once, when a process starts; it tells every problem at once. On one machine
only those that the launcher reads need to be set, if any: it gives the processes theirs.

${table}`).toMatchFileSnapshot('../../docs/settings.md')
})
