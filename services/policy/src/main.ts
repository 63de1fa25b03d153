import { runProgram } from '@overlay/process'
import { ownProcess } from '@overlay/process/component'
import { runPolicy } from './run.js'

await runProgram('policy', () => runPolicy(process.env, `${import.meta.dirname}/../migrations`, ownProcess))
