// What early_main.cpp calls itself where the environment does not make the library call it.
#pragma once

void early_begin();
void early_main();
int early_end();
