import { expect, test } from 'vitest'
import { settingsOfCommands, settingsOfProcesses } from '../../launcher/src/settings/process-settings.js'
import { launcherSettings } from '../../launcher/src/settings/settings.js'
import { settingsTable } from '../../packages/process/src/settings.js'

// `npx vitest run test-e2e/tests/settings -u` updates the file
test('the table of settings in the documentation matches the declarations', async () => {
  const table = settingsTable({
    launcher: launcherSettings,
    ...settingsOfProcesses,
    ...settingsOfCommands,
  })
    .replaceAll('gateway, identity, pki, policy, sessions', 'all processes')
    .replaceAll('identity, pki, policy, sessions', 'all services')
  await expect(`# Settings

All settings are environment variables, read once at the start. On one machine, the launcher passes them to the processes
and chooses those that must be set. On Kubernetes, the commands \`migrate\`, \`pki-init\` and \`identity-init\` do what the
launcher does before it starts the processes. Services are identity, pki, policy and sessions; processes are these and gateway.

${table}`).toMatchFileSnapshot('../../docs/settings.md')
})
