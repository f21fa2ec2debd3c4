# OSC_SANITIZE=address,undefined (or thread) instruments every target of this build. Reports need line numbers only (-g1).
if(OSC_SANITIZE)
  add_compile_definitions(OSC_SANITIZED)
  add_compile_options(-fsanitize=${OSC_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${OSC_SANITIZE})
endif()
