import { runProgram } from '@overlay/process'
import { ownProcess } from '@overlay/process/component'
import { runSessions } from './run.js'

await runProgram('sessions', () =>
  runSessions(process.env, `${import.meta.dirname}/../migrations`, ownProcess),
)
