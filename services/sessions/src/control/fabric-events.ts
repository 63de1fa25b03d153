export type { FabricEvent, FabricEvents } from '@overlay/platform/change-log'
