import { endProcess } from '@overlay/platform/process'
import './gateway.js'

endProcess()
